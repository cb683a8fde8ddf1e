-- Environment horovod-module, id not-locked, lock sha256 none
help(table.concat({
  "horovod-module/1: The site's Horovod module for TensorFlow, loaded and proved",
  "For site taurus-ml, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.7.4 <- module:Python/3.7.4-GCCcore-8.3.0",
  "  tensorflow@2.2.0 <- module:TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4",
  "  horovod@0.19.5 <- module:Horovod/0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4",
  "  numpy@1.17.3 <- module:SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4",
  "  mpi4py@3.0.2 <- module:SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4",
  "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2019b",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems:",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.19.5)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-045: CUDA 10.1 needs a driver of 418.39 or later (cuda@10.1.243)",
  "    depends on: driver",
  "    fix: driver 418.39 or later, or an older CUDA",
  "    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  srun --mpi=pmix --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load modenv/ml",
  "  load Horovod/0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
}, "\n"))
whatis("Name: horovod-module")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: The site's Horovod module for TensorFlow, loaded and proved")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-ml/ppc64le/horovod-module/not-locked") then
  LmodError("horovod-module: planned, but not built; to build it: envbuild create horovod-module --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/ml")
depends_on("Horovod/0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4")
pushenv("VIRTUAL_ENV", "/projects/envbuild/taurus-ml/ppc64le/horovod-module/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-ml/ppc64le/horovod-module/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CUDA/10.1.243-GCC-8.3.0",
    "FFTW/3.3.8-gompic-2019b",
    "GCC/8.3.0",
    "GCCcore/8.3.0",
    "Horovod/0.19.5-fosscuda-2019b-TensorFlow-2.2.0-Python-3.7.4",
    "NCCL/2.4.8-gcccuda-2019b",
    "OpenBLAS/0.3.7-GCC-8.3.0",
    "OpenMPI/3.1.4-gcccuda-2019b",
    "Python/3.7.4-GCCcore-8.3.0",
    "ScaLAPACK/2.0.2-gompic-2019b",
    "SciPy-bundle/2019.10-fosscuda-2019b-Python-3.7.4",
    "TensorFlow/2.2.0-fosscuda-2019b-Python-3.7.4",
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
    LmodMessage("horovod-module: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
