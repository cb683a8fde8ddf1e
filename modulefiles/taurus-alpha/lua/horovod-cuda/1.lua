-- Environment horovod-cuda, id not-locked, lock sha256 none
help(table.concat({
  "horovod-cuda/1: Horovod 0.28.1 for PyTorch, GPU operations by NCCL, CUDA of the site",
  "For site taurus-alpha, x86_64. Environment not-locked.",
  "",
  "Components:",
  "  python@3.8.6 <- module:Python/3.8.6",
  "  pytorch@1.9.0 <- module:PyTorch/1.9.0",
  "  cuda@11.1.1 <- module:CUDA/11.1.1",
  "  nccl@2.8.3 <- module:NCCL/2.8.3-CUDA-11.1.1",
  "  openmpi@4.0.5 <- module:OpenMPI/4.0.5",
  "  cmake@3.18.4 <- module:CMake/3.18.4",
  "  horovod@0.28.1 <- build:horovod",
  "  numpy@1.19.4 <- module:SciPy-bundle/2020.11",
  "  mpi4py@3.0.3 <- module:SciPy-bundle/2020.11",
  "  cloudpickle@3.1.2 <- pip:cloudpickle",
  "  psutil@7.2.2 <- pip:psutil",
  "  pyyaml@6.0.3 <- pip:pyyaml",
  "  packaging@26.2 <- pip:packaging",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems that a remedy solves:",
  "  HVD-030: its setup.py imports packaging, which build isolation hides (horovod@0.28.1)",
  "    lifted by with packaging *",
  "    https://github.com/horovod/horovod/issues/3744",
  "  HVD-132: its setup.py asks for cffi, which it does not use and setuptools fetches in mid-build (horovod@0.28.1)",
  "    lifted by flag HOROVOD_WITHOUT_PYTORCH=0",
  "    https://github.com/horovod/horovod/blob/v0.20.0/setup.py",
  "  HVD-133: takes the static NCCL of the system where the chosen NCCL has none: the headers of one release, the code of another (horovod@0.28.1, nccl@2.8.3)",
  "    lifted by flag HOROVOD_NCCL_LINK=SHARED",
  "    https://github.com/horovod/horovod/blob/v0.28.1/cmake/Modules/FindNCCL.cmake",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-005: its headers contradict those of glibc 2.42 (cospi, sinpi, rsqrt) (cuda@11.1.1)",
  "    depends on: glibc",
  "    fix: CUDA 13.1 and later, or an older glibc",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/cuda/package.py",
  "  CUDA-043: CUDA 11 needs a driver of 450.80.02 or later (cuda@11.1.1)",
  "    depends on: driver",
  "    fix: driver 450.80.02 or later, or an older CUDA",
  "    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
  "  OMPI-032: is not started by the srun of a Slurm whose only PMIx is of release 5 (openmpi@4.0.5)",
  "    depends on: pmi",
  "    fix: start ranks by mpirun, take Open MPI 5, or have Slurm built with PMIx 4 as well",
  "    https://github.com/openpmix/openpmix/issues/3731",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  srun --mpi=pmix --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load modenv/hiera",
  "  load GCC/10.2.0",
  "  load CMake/3.18.4",
  "  load CUDA/11.1.1",
  "  load OpenMPI/4.0.5",
  "  load PyTorch/1.9.0",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
}, "\n"))
whatis("Name: horovod-cuda")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Horovod 0.28.1 for PyTorch, GPU operations by NCCL, CUDA of the site")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-alpha/x86_64/horovod-cuda/not-locked") then
  LmodError("horovod-cuda: planned, but not built; to build it: envbuild create horovod-cuda --site taurus-alpha --arch x86_64 --root /projects/envbuild/taurus-alpha/x86_64")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/hiera")
depends_on("GCC/10.2.0")
depends_on("CMake/3.18.4")
depends_on("CUDA/11.1.1")
depends_on("OpenMPI/4.0.5")
depends_on("PyTorch/1.9.0")
pushenv("VIRTUAL_ENV", "/projects/envbuild/taurus-alpha/x86_64/horovod-cuda/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-alpha/x86_64/horovod-cuda/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CMake/3.18.4",
    "CUDA/11.1.1",
    "CUDAcore/11.1.1",
    "GCC/10.2.0",
    "GCCcore/10.2.0",
    "NCCL/2.8.3-CUDA-11.1.1",
    "OpenMPI/4.0.5",
    "PyTorch/1.9.0",
    "Python/3.8.6",
    "SciPy-bundle/2020.11",
    "binutils/2.35",
    "cuDNN/8.0.4.30-CUDA-11.1.1",
    "modenv/hiera",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("horovod-cuda: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
