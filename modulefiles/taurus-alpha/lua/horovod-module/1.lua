-- Environment horovod-module, id not-locked, lock sha256 none
help(table.concat({
  "horovod-module/1: The site's Horovod module for TensorFlow, loaded and proved",
  "For site taurus-alpha, x86_64. Environment not-locked.",
  "",
  "Components:",
  "  python@3.8.6 <- module:Python/3.8.6",
  "  tensorflow@2.4.1 <- module:TensorFlow/2.4.1",
  "  horovod@0.21.1 <- module:Horovod/0.21.1-TensorFlow-2.4.1",
  "  numpy@1.19.4 <- module:SciPy-bundle/2020.11",
  "  mpi4py@3.0.3 <- module:SciPy-bundle/2020.11",
  "  openmpi@4.0.5 <- module:OpenMPI/4.0.5",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems:",
  "  HVD-010: workers can fall out of step and lock up with TensorFlow 2.4 and later (horovod@0.21.1, tensorflow@2.4.1)",
  "    fix: Horovod 0.21.3 and later",
  "    https://github.com/horovod/horovod/blob/2626dc87/CHANGELOG.md (0.21.3, #2647)",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.21.1)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
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
  "  load CUDA/11.1.1",
  "  load OpenMPI/4.0.5",
  "  load Horovod/0.21.1-TensorFlow-2.4.1",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
}, "\n"))
whatis("Name: horovod-module")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: The site's Horovod module for TensorFlow, loaded and proved")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-alpha/x86_64/horovod-module/not-locked") then
  LmodError("horovod-module: planned, but not built; to build it: envbuild create horovod-module --site taurus-alpha --arch x86_64 --root /projects/envbuild/taurus-alpha/x86_64")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/hiera")
depends_on("GCC/10.2.0")
depends_on("CUDA/11.1.1")
depends_on("OpenMPI/4.0.5")
depends_on("Horovod/0.21.1-TensorFlow-2.4.1")
pushenv("VIRTUAL_ENV", "/projects/envbuild/taurus-alpha/x86_64/horovod-module/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-alpha/x86_64/horovod-module/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CUDA/11.1.1",
    "CUDAcore/11.1.1",
    "GCC/10.2.0",
    "GCCcore/10.2.0",
    "Horovod/0.21.1-TensorFlow-2.4.1",
    "NCCL/2.8.3-CUDA-11.1.1",
    "OpenMPI/4.0.5",
    "Python/3.8.6",
    "SciPy-bundle/2020.11",
    "TensorFlow/2.4.1",
    "binutils/2.35",
    "cuDNN/8.0.4.30-CUDA-11.1.1",
    "modenv/hiera",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("horovod-module: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
