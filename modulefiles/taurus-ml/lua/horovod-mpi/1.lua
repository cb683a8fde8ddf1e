-- Environment horovod-mpi, id not-locked, lock sha256 none
help(table.concat({
  "horovod-mpi/1: Horovod for TensorFlow, all GPU operations over MPI",
  "For site taurus-ml, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.6 <- module:PythonAnaconda/3.6",
  "  tensorflow@1.14.0 <- module:TensorFlow/1.14.0-PythonAnaconda-3.6",
  "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2018b",
  "  cuda@9.2.88 <- module:CUDA/9.2.88-GCC-7.3.0-2.30",
  "  cmake@3.12.1 <- module:CMake/3.12.1-GCCcore-7.3.0",
  "  horovod@0.19.5 <- build:horovod",
  "  numpy@1.14.5 <- module:TensorFlow/1.14.0-PythonAnaconda-3.6",
  "  mpi4py@4.0.3 <- build:mpi4py",
  "  cloudpickle@2.2.1 <- pip:cloudpickle",
  "  psutil@7.2.2 <- build:psutil",
  "  pyyaml@6.0.1 <- build:pyyaml",
  "  cffi@1.15.1 <- pip:cffi",
  "  six@1.17.0 <- pip:six",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems that a remedy solves:",
  "  HVD-057: has no bdist_wheel of its own, which building Horovod needs (horovod@0.19.5, setuptools@59.6.0)",
  "    lifted by built with wheel",
  "    https://github.com/pypa/setuptools/blob/7d531288/NEWS.rst (70.1.0)",
  "",
  "Known problems:",
  "  CUDA-017: Spack takes it for refused by nvcc on ppc64le (cuda@9.2.88, gcc@7.3.0)",
  "    fix: an older GCC or a newer CUDA; nvcc takes it at your risk with -allow-unsupported-compiler",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/build_systems/cuda.py",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.19.5)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
  "  HVD-042: exports symbols of hwloc, on which Open MPI can crash (openmpi@3.1.4, tensorflow@1.14.0)",
  "    fix: LD_PRELOAD of the system's libhwloc, where a crash names hwloc",
  "    https://github.com/horovod/horovod/blob/2626dc87/docs/troubleshooting.rst",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-047: CUDA 9.2 needs a driver of 396.26 or later (cuda@9.2.88)",
  "    depends on: driver",
  "    fix: driver 396.26 or later, or an older CUDA",
  "    https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
  "  HVD-056: GPU operations through MPI hand it GPU buffers, which only a CUDA-aware MPI can read (horovod@0.19.5, openmpi@3.1.4)",
  "    depends on: mpi.cuda_aware",
  "    fix: a CUDA-aware MPI, or NCCL for these operations",
  "    https://github.com/horovod/horovod/blob/2626dc87/docs/gpus.rst",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  srun --mpi=pmix --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load modenv/ml",
  "  load CMake/3.12.1-GCCcore-7.3.0",
  "  load TensorFlow/1.14.0-PythonAnaconda-3.6",
  "  load OpenMPI/3.1.4-gcccuda-2018b",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
}, "\n"))
whatis("Name: horovod-mpi")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Horovod for TensorFlow, all GPU operations over MPI")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-ml/ppc64le/horovod-mpi/not-locked") then
  LmodError("horovod-mpi: planned, but not built; to build it: envbuild create horovod-mpi --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/ml")
depends_on("CMake/3.12.1-GCCcore-7.3.0")
depends_on("TensorFlow/1.14.0-PythonAnaconda-3.6")
depends_on("OpenMPI/3.1.4-gcccuda-2018b")
pushenv("VIRTUAL_ENV", "/projects/envbuild/taurus-ml/ppc64le/horovod-mpi/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-ml/ppc64le/horovod-mpi/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CMake/3.12.1-GCCcore-7.3.0",
    "CUDA/9.2.88-GCC-7.3.0-2.30",
    "GCC/7.3.0-2.30",
    "GCCcore/7.3.0",
    "OpenMPI/3.1.4-gcccuda-2018b",
    "PythonAnaconda/3.6",
    "TensorFlow/1.14.0-PythonAnaconda-3.6",
    "binutils/2.30-GCCcore-7.3.0",
    "gcccuda/2018b",
    "modenv/ml",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("horovod-mpi: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
