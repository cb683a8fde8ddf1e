-- Environment allreduce, id 724adb282ad3, lock sha256 724adb282ad3d80abe543886fd9d9586fc27ece3f688d6e270a9e2c17c4bfaeb
help(table.concat({
  "allreduce/3: An allreduce over MPI, and nothing else",
  "For site local, x86_64. Environment 724adb282ad3.",
  "",
  "Components:",
  "  python@3.11.7 <- system:/usr/bin/python3.11",
  "  numpy@1.26.4 <- pip:numpy",
  "  mpich@5.0.2 <- pip:mpich",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Proved: several ranks, native, 2025-01-31T12:00:00Z",
  "  smoke test passed: 2 ranks in 12.3 s",
  "  site local, x86_64, nodes: node1",
  "  MPI: MPICH 5.0.2",
  "  libmpi: /software/mpich/lib/libmpi.so.12 (from prefix)",
  "  allreduce: 2 of 2 checks passed",
  "  broadcast: 1 of 1 checks passed",
  "",
  "Start a program on 2 ranks:",
  "  mpiexec -n 2 python PROGRAM.py",
}, "\n"))
whatis("Name: allreduce")
whatis("Version: 3")
whatis("Category: deep learning environment")
whatis("Description: An allreduce over MPI, and nothing else")
whatis("Proved: several ranks, 2025-01-31T12:00:00Z")

-- Two environments of envbuild exclude each other.
family("envbuild")
pushenv("VIRTUAL_ENV", "/software/local/allreduce/abc")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/software/local/allreduce/abc/bin")

if mode() == "load" and (os.getenv("PYTHONPATH") or "") ~= "" then
  LmodMessage("allreduce: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH")
end
