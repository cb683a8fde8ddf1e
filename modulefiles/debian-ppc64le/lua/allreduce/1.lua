-- Environment allreduce, id not-locked, lock sha256 none
help(table.concat({
  "allreduce/1: Collective runtime on the numpy and MPI of the system or the site's modules",
  "For site debian-ppc64le, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.11.2 <- system:/usr/bin/python3",
  "  numpy@1.24.2 <- system:/usr/bin/python3",
  "  mpi4py@3.1.4 <- system:/usr/bin/python3",
  "  openmpi@4.1.4 <- system:/usr/bin/mpicxx",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems:",
  "  OMPI-028: reductions of unsigned long give wrong results (openmpi@4.1.4)",
  "    fix: another release, or a build with the patch",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/openmpi/package.py",
  "",
  "Undecided, because facts are not stated:",
  "  OMPI-032: is not started by the srun of a Slurm whose only PMIx is of release 5 (openmpi@4.1.4)",
  "    depends on: pmi, scheduler",
  "    fix: start ranks by mpirun, take Open MPI 5, or have Slurm built with PMIx 4 as well",
  "    https://github.com/openpmix/openpmix/issues/3731",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  mpiexec -n 2 --bind-to none --map-by slot python PROGRAM.py",
}, "\n"))
whatis("Name: allreduce")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Collective runtime on the numpy and MPI of the system or the site's modules")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/opt/envbuild/debian-ppc64le/ppc64le/allreduce/not-locked") then
  LmodError("allreduce: planned, but not built; to build it: envbuild create allreduce --site debian-ppc64le --arch ppc64le --root /opt/envbuild/debian-ppc64le/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
pushenv("VIRTUAL_ENV", "/opt/envbuild/debian-ppc64le/ppc64le/allreduce/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/opt/envbuild/debian-ppc64le/ppc64le/allreduce/not-locked/bin")

if mode() == "load" and (os.getenv("PYTHONPATH") or "") ~= "" then
  LmodMessage("allreduce: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH")
end
