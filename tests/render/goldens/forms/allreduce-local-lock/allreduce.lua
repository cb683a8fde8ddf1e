-- Environment allreduce, id fed3a3de4810, lock sha256 fed3a3de48101ab995a89b70a58738848a6fb88c5b1a21ae145830254e11991c
help(table.concat({
  "allreduce/1: An allreduce over MPI, and nothing else",
  "For site local, x86_64. Environment fed3a3de4810.",
  "",
  "Components:",
  "  python@3.11.7 <- system:/usr/bin/python3.11",
  "  numpy@1.26.4 <- pip:numpy",
  "  mpich@5.0.2 <- pip:mpich",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Proved: nothing yet (tier rendered).",
  "",
  "Start a program on two ranks:",
  "  mpiexec -n 2 python PROGRAM.py",
}, "\n"))
whatis("Name: allreduce")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: An allreduce over MPI, and nothing else")
whatis("Proved: rendered, nothing was run")

-- Two environments of envbuild exclude each other.
family("envbuild")
pushenv("VIRTUAL_ENV", "/software/local/allreduce/abc")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/software/local/allreduce/abc/bin")

if mode() == "load" and (os.getenv("PYTHONPATH") or "") ~= "" then
  LmodMessage("allreduce: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH")
end
