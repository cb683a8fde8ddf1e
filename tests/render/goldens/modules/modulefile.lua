-- Environment allreduce-modules, id c4acc4ae3d54, lock sha256 c4acc4ae3d5498e431752f9bf62f87fe60c727bade3c47859b6ed2047eb86b1a
help(table.concat({
  "allreduce-modules/3: An allreduce over MPI, and nothing else",
  "For site cluster, x86_64. Environment c4acc4ae3d54.",
  "",
  "Components:",
  "  python@3.11.7 <- system:/usr/bin/python3.11",
  "  numpy@1.26.4 <- pip:numpy",
  "  openmpi@4.1.5 <- module:OpenMPI/4.1.5-GCC-12.3.0",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  mpiexec -n 2 --bind-to none --map-by slot python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load Python/3.11.3-GCCcore-12.3.0",
  "  load OpenMPI/4.1.5-GCC-12.3.0",
  "If the module system does not find them, first run: module use",
  "  /apps/modules/all",
  "  /apps/modules/extra",
}, "\n"))
whatis("Name: allreduce-modules")
whatis("Version: 3")
whatis("Category: deep learning environment")
whatis("Description: An allreduce over MPI, and nothing else")
whatis("Proved: rendered, not tested")

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("Python/3.11.3-GCCcore-12.3.0")
depends_on("OpenMPI/4.1.5-GCC-12.3.0")
pushenv("VIRTUAL_ENV", "/software/cluster/env/abc")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/software/cluster/env/abc/bin")
pushenv("OMP_NUM_THREADS", "1")
pushenv("PYTHONHOME", false)
append_path("MANPATH", "/software/cluster/env/abc/share/man")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "GCC/12.3.0",
    "GCCcore/12.3.0",
    "OpenMPI/4.1.5-GCC-12.3.0",
    "Python/3.11.3-GCCcore-12.3.0",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("allreduce-modules: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
