-- Environment pytorch-source, id not-locked, lock sha256 none
help(table.concat({
  "pytorch-source/1: PyTorch 1.7.1 compiled from its git tree, and Horovod for it over MPI",
  "For site taurus-ml, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.6.6 <- module:Python/3.6.6-fosscuda-2018b",
  "  pytorch@1.7.1 <- build:https://github.com/pytorch/pytorch#v1.7.1",
  "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2018b",
  "  cudnn@7.1.4.18 <- module:cuDNN/7.1.4.18-fosscuda-2018b",
  "  cuda@9.2.88 <- module:CUDA/9.2.88-GCC-7.3.0-2.30",
  "  gcc@7.3.0 <- module:GCCcore/7.3.0",
  "  dataclasses@0.8 <- pip:dataclasses",
  "  cmake@3.12.1 <- module:CMake/3.12.1-GCCcore-7.3.0",
  "  horovod@0.21.3 <- build:horovod",
  "  numpy@1.15.0 <- module:Python/3.6.6-fosscuda-2018b",
  "  mpi4py@3.0.0 <- module:Python/3.6.6-fosscuda-2018b",
  "  cloudpickle@2.2.1 <- pip:cloudpickle",
  "  psutil@7.2.2 <- build:psutil",
  "  pyyaml@6.0.1 <- build:pyyaml",
  "  packaging@21.3 <- pip:packaging",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems that a remedy solves:",
  "  HVD-027: its CUDA kernels are built in a race where make runs several jobs at once (horovod@0.21.3)",
  "    lifted by variable MAKEFLAGS=-j1",
  "    https://github.com/horovod/horovod/blob/2626dc87/CHANGELOG.md (0.21.1 #2572, 0.24.0 #3261)",
  "  HVD-057: has no bdist_wheel of its own, which building Horovod needs (horovod@0.21.3, setuptools@59.6.0)",
  "    lifted by built with wheel",
  "    https://github.com/pypa/setuptools/blob/7d531288/NEWS.rst (70.1.0)",
  "  HVD-058: has no dataclasses, which Horovod 0.20 and later imports (horovod@0.21.3, python@3.6.6)",
  "    lifted by with dataclasses *",
  "    https://github.com/horovod/horovod/blob/v0.20.0/setup.py",
  "  HVD-132: its setup.py asks for cffi, which it does not use and setuptools fetches in mid-build (horovod@0.21.3)",
  "    lifted by flag HOROVOD_WITHOUT_PYTORCH=0",
  "    https://github.com/horovod/horovod/blob/v0.20.0/setup.py",
  "",
  "Known problems:",
  "  CUDA-017: Spack takes it for refused by nvcc on ppc64le (cuda@9.2.88, gcc@7.3.0)",
  "    fix: an older GCC or a newer CUDA; nvcc takes it at your risk with -allow-unsupported-compiler",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/build_systems/cuda.py",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.21.3)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
  "  TORCH-224: destroy_process_group() over gloo may hang where the last tensor was made by from_numpy() (pytorch@1.7.1)",
  "    fix: PyTorch 1.9 and later, or torch.tensor(array), which copies",
  "    https://github.com/pytorch/pytorch/issues/56297",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-047: CUDA 9.2 needs a driver of 396.26 or later (cuda@9.2.88)",
  "    depends on: driver",
  "    fix: driver 396.26 or later, or an older CUDA",
  "    https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html",
  "  HVD-056: GPU operations through MPI hand it GPU buffers, which only a CUDA-aware MPI can read (horovod@0.21.3, openmpi@3.1.4)",
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
  "  load Python/3.6.6-fosscuda-2018b",
  "  load cuDNN/7.1.4.18-fosscuda-2018b",
  "  unload OpenMPI/3.1.1-gcccuda-2018b",
  "  load OpenMPI/3.1.4-gcccuda-2018b",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
  "",
  "The module system then warns that OpenMPI/3.1.1-gcccuda-2018b is missing. This is intended.",
  "Unloading this module does not restore it, and modules that loaded it may remain.",
  "To reset the shell, run module purge or start a new shell.",
}, "\n"))
whatis("Name: pytorch-source")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: PyTorch 1.7.1 compiled from its git tree, and Horovod for it over MPI")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-ml/ppc64le/pytorch-source/not-locked") then
  LmodError("pytorch-source: planned, but not built; to build it: envbuild create pytorch-source --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/ml")
depends_on("CMake/3.12.1-GCCcore-7.3.0")
depends_on("Python/3.6.6-fosscuda-2018b")
depends_on("cuDNN/7.1.4.18-fosscuda-2018b")
if mode() ~= "unload" then unload("OpenMPI/3.1.1-gcccuda-2018b") end
depends_on("OpenMPI/3.1.4-gcccuda-2018b")
pushenv("VIRTUAL_ENV", "/projects/envbuild/taurus-ml/ppc64le/pytorch-source/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-ml/ppc64le/pytorch-source/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CMake/3.12.1-GCCcore-7.3.0",
    "CUDA/9.2.88-GCC-7.3.0-2.30",
    "FFTW/3.3.8-gompic-2018b",
    "GCC/7.3.0-2.30",
    "GCCcore/7.3.0",
    "OpenBLAS/0.3.1-GCC-7.3.0-2.30",
    "OpenMPI/3.1.4-gcccuda-2018b",
    "Python/3.6.6-fosscuda-2018b",
    "ScaLAPACK/2.0.2-gompic-2018b-OpenBLAS-0.3.1",
    "binutils/2.30-GCCcore-7.3.0",
    "cuDNN/7.1.4.18-fosscuda-2018b",
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
    LmodMessage("pytorch-source: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
