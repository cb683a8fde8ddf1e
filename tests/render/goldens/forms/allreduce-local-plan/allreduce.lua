-- Environment allreduce, id not-locked, lock sha256 none
help(table.concat({
  "allreduce/1: An allreduce over MPI, and nothing else",
  "For site local, x86_64. Environment not-locked.",
  "",
  "Components:",
  "  python@3.11.7 <- system:/usr/bin/python3.11",
  "  numpy@1.26.4 <- pip:numpy",
  "  mpich@5.0.2 <- pip:mpich",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Proved: nothing (tier rendered).",
}, "\n"))
whatis("Name: allreduce")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: An allreduce over MPI, and nothing else")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/software/local/allreduce/abc") then
  LmodError("allreduce: planned, but not built; to build it: envbuild create allreduce --site local --arch x86_64 --root /software/local")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
pushenv("VIRTUAL_ENV", "/software/local/allreduce/abc")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/software/local/allreduce/abc/bin")

if mode() == "load" and (os.getenv("PYTHONPATH") or "") ~= "" then
  LmodMessage("allreduce: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH")
end
