-- Environment horovod-nccl-wmlce, id not-locked, lock sha256 none
help(table.concat({
  "horovod-nccl-wmlce/1: Horovod for TensorFlow and PyTorch in a conda environment of WMLCE, by NCCL",
  "For site taurus-ml, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.7 <- conda:defaults/python",
  "  wmlce@1.7.0 <- conda:wmlce/powerai",
  "  pytorch@1.3.1 <- conda:wmlce/pytorch",
  "  tensorflow@2.1.0 <- conda:wmlce/tensorflow-gpu",
  "  nccl@2.5.6 <- conda:wmlce/nccl",
  "  cuda@10.2.89 <- conda:wmlce/cudatoolkit-dev",
  "  spectrum-mpi@10.3 <- conda:wmlce/spectrum-mpi",
  "  gcc@7.3.0 <- conda:defaults/gxx_linux-ppc64le",
  "  horovod@0.19.5 <- build:horovod",
  "  numpy@1.17.4 <- conda:defaults/numpy",
  "  mpi4py@4.0.3 <- build:mpi4py",
  "  cloudpickle@1.3.0 <- conda:defaults/cloudpickle",
  "  psutil@5.6.7 <- conda:defaults/psutil",
  "  pyyaml@5.2 <- conda:defaults/pyyaml",
  "  cffi@1.14.0 <- conda:defaults/cffi",
  "  six@1.17.0 <- pip:six",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems that a remedy solves:",
  "  HVD-036: looks for the static NCCL only, and fails where there is none (horovod@0.19.5, nccl@2.5.6)",
  "    lifted by flag HOROVOD_NCCL_LINK=SHARED",
  "    https://github.com/horovod/horovod/blob/2626dc87/CHANGELOG.md (0.25.0, #3500)",
  "  HVD-055: its compiler wrapper calls IBM's xlC_r, whose options Horovod cannot take over (horovod@0.19.5, spectrum-mpi@10.3)",
  "    lifted by variable OMPI_CXX=g++",
  "    https://github.com/horovod/horovod/blob/v0.19.5/setup.py",
  "  HVD-057: has no bdist_wheel of its own, which building Horovod needs (horovod@0.19.5, setuptools@68.0.0)",
  "    lifted by built with wheel",
  "    https://github.com/pypa/setuptools/blob/7d531288/NEWS.rst (70.1.0)",
  "",
  "Known problems:",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.19.5)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
  "  TORCH-224: destroy_process_group() over gloo may hang where the last tensor was made by from_numpy() (pytorch@1.3.1)",
  "    fix: PyTorch 1.9 and later, or torch.tensor(array), which copies",
  "    https://github.com/pytorch/pytorch/issues/56297",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-044: CUDA 10.2 needs a driver of 440.33 or later (cuda@10.2.89)",
  "    depends on: driver",
  "    fix: driver 440.33 or later, or an older CUDA",
  "    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  srun --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load modenv/ml",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/taurus/environment",
}, "\n"))
whatis("Name: horovod-nccl-wmlce")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Horovod for TensorFlow and PyTorch in a conda environment of WMLCE, by NCCL")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/projects/envbuild/taurus-ml/ppc64le/horovod-nccl-wmlce/not-locked") then
  LmodError("horovod-nccl-wmlce: planned, but not built; to build it: envbuild create horovod-nccl-wmlce --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/ml")
pushenv("CONDA_PREFIX", "/projects/envbuild/taurus-ml/ppc64le/horovod-nccl-wmlce/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/projects/envbuild/taurus-ml/ppc64le/horovod-nccl-wmlce/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "modenv/ml",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("horovod-nccl-wmlce: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
