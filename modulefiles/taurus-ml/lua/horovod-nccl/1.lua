-- Environment horovod-nccl, id not-locked, lock sha256 none
help(table.concat({
  "horovod-nccl/1: Horovod for TensorFlow, NCCL allreduce inside and MPI between nodes",
  "For site taurus-ml, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.6 <- module:PythonAnaconda/3.6",
  "  tensorflow@1.14.0 <- module:TensorFlow/1.14.0-PythonAnaconda-3.6",
  "  nccl@2.3.7 <- module:NCCL/2.3.7-fosscuda-2018b",
  "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2018b",
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
  "  HVD-036: looks for the static NCCL only, and fails where there is none (horovod@0.19.5, nccl@2.3.7)",
  "    lifted by flag HOROVOD_NCCL_LINK=SHARED",
  "    https://github.com/horovod/horovod/blob/2626dc87/CHANGELOG.md (0.25.0, #3500)",
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
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  srun --mpi=pmix --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load modenv/ml",
  "  load CMake/3.12.1-GCCcore-7.3.0",
  "  load NCCL/2.3.7-fosscuda-2018b",
  "  load TensorFlow/1.14.0-PythonAnaconda-3.6",
  "  unload OpenMPI/3.1.1-gcccuda-2018b",
  "  load OpenMPI/3.1.4-gcccuda-2018b",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
  "",
  "The module system then warns that OpenMPI/3.1.1-gcccuda-2018b is missing. This is intended.",
  "Unloading this module does not restore it, and modules that loaded it may remain.",
  "To reset the shell, run module purge or start a new shell.",
}, "\n"))
whatis("Name: horovod-nccl")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Horovod for TensorFlow, NCCL allreduce inside and MPI between nodes")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-ml/ppc64le/horovod-nccl/not-locked") then
  LmodError("horovod-nccl: planned, but not built; to build it: envbuild create horovod-nccl --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/ml")
depends_on("CMake/3.12.1-GCCcore-7.3.0")
depends_on("NCCL/2.3.7-fosscuda-2018b")
depends_on("TensorFlow/1.14.0-PythonAnaconda-3.6")
if mode() ~= "unload" then unload("OpenMPI/3.1.1-gcccuda-2018b") end
depends_on("OpenMPI/3.1.4-gcccuda-2018b")
pushenv("VIRTUAL_ENV", "/projects/envbuild/taurus-ml/ppc64le/horovod-nccl/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-ml/ppc64le/horovod-nccl/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CMake/3.12.1-GCCcore-7.3.0",
    "CUDA/9.2.88-GCC-7.3.0-2.30",
    "FFTW/3.3.8-gompic-2018b",
    "GCC/7.3.0-2.30",
    "GCCcore/7.3.0",
    "NCCL/2.3.7-fosscuda-2018b",
    "OpenBLAS/0.3.1-GCC-7.3.0-2.30",
    "OpenMPI/3.1.4-gcccuda-2018b",
    "PythonAnaconda/3.6",
    "ScaLAPACK/2.0.2-gompic-2018b-OpenBLAS-0.3.1",
    "TensorFlow/1.14.0-PythonAnaconda-3.6",
    "binutils/2.30-GCCcore-7.3.0",
    "fosscuda/2018b",
    "gcccuda/2018b",
    "gompic/2018b",
    "modenv/ml",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("horovod-nccl: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
