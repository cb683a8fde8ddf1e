-- Environment horovod-pytorch, id not-locked, lock sha256 none
help(table.concat({
  "horovod-pytorch/1: Horovod for PyTorch, all GPU operations over MPI",
  "For site taurus-ml, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.7.4 <- module:Python/3.7.4-GCCcore-8.3.0",
  "  pytorch@1.6.0 <- module:PyTorch/1.6.0-fosscuda-2019b-Python-3.7.4",
  "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2019b",
  "  cudnn@7.6.4.38 <- module:cuDNN/7.6.4.38-gcccuda-2019b",
  "  cuda@10.1.243 <- module:CUDA/10.1.243-GCC-8.3.0",
  "  cmake@3.15.3 <- module:CMake/3.15.3-GCCcore-8.3.0",
  "  horovod@0.21.3 <- build:horovod",
  "  numpy@1.17.3 <- module:SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4",
  "  mpi4py@3.0.2 <- module:SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4",
  "  cloudpickle@2.2.1 <- pip:cloudpickle",
  "  psutil@7.2.2 <- build:psutil",
  "  pyyaml@6.0.1 <- build:pyyaml",
  "  cffi@1.15.1 <- pip:cffi",
  "  six@1.17.0 <- pip:six",
  "  packaging@24.0 <- pip:packaging",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems that a remedy solves:",
  "  HVD-027: its CUDA kernels are built in a race where make runs several jobs at once (horovod@0.21.3)",
  "    lifted by variable MAKEFLAGS=-j1",
  "    https://github.com/horovod/horovod/blob/2626dc87/CHANGELOG.md (0.21.1 #2572, 0.24.0 #3261)",
  "  HVD-057: has no bdist_wheel of its own, which building Horovod needs (horovod@0.21.3, setuptools@68.0.0)",
  "    lifted by built with wheel",
  "    https://github.com/pypa/setuptools/blob/7d531288/NEWS.rst (70.1.0)",
  "  HVD-132: its setup.py asks for cffi, which it does not use and setuptools fetches in mid-build (horovod@0.21.3)",
  "    lifted by flag HOROVOD_WITHOUT_PYTORCH=0",
  "    https://github.com/horovod/horovod/blob/v0.20.0/setup.py",
  "",
  "Known problems:",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.21.3)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
  "  TORCH-224: destroy_process_group() over gloo may hang where the last tensor was made by from_numpy() (pytorch@1.6.0)",
  "    fix: PyTorch 1.9 and later, or torch.tensor(array), which copies",
  "    https://github.com/pytorch/pytorch/issues/56297",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-045: CUDA 10.1 needs a driver of 418.39 or later (cuda@10.1.243)",
  "    depends on: driver",
  "    fix: driver 418.39 or later, or an older CUDA",
  "    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
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
  "  load CMake/3.15.3-GCCcore-8.3.0",
  "  load PyTorch/1.6.0-fosscuda-2019b-Python-3.7.4",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
}, "\n"))
whatis("Name: horovod-pytorch")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Horovod for PyTorch, all GPU operations over MPI")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-ml/ppc64le/horovod-pytorch/not-locked") then
  LmodError("horovod-pytorch: planned, but not built; to build it: envbuild create horovod-pytorch --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/ml")
depends_on("CMake/3.15.3-GCCcore-8.3.0")
depends_on("PyTorch/1.6.0-fosscuda-2019b-Python-3.7.4")
pushenv("VIRTUAL_ENV", "/projects/envbuild/taurus-ml/ppc64le/horovod-pytorch/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-ml/ppc64le/horovod-pytorch/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CMake/3.15.3-GCCcore-8.3.0",
    "CUDA/10.1.243-GCC-8.3.0",
    "FFTW/3.3.8-gompic-2019b",
    "GCC/8.3.0",
    "GCCcore/8.3.0",
    "NCCL/2.4.8-gcccuda-2019b",
    "OpenBLAS/0.3.7-GCC-8.3.0",
    "OpenMPI/3.1.4-gcccuda-2019b",
    "PyTorch/1.6.0-fosscuda-2019b-Python-3.7.4",
    "Python/3.7.4-GCCcore-8.3.0",
    "ScaLAPACK/2.0.2-gompic-2019b",
    "SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4",
    "binutils/2.32-GCCcore-8.3.0",
    "cuDNN/7.6.4.38-gcccuda-2019b",
    "fosscuda/2019b",
    "gcccuda/2019b",
    "gompic/2019b",
    "modenv/ml",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("horovod-pytorch: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
