-- Environment horovod-ddl-wmlce, id not-locked, lock sha256 none
help(table.concat({
  "horovod-ddl-wmlce/1: Horovod for TensorFlow and PyTorch in a conda environment of WMLCE, by IBM DDL",
  "For site summit, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.7 <- conda:defaults/python",
  "  wmlce@1.7.0 <- conda:wmlce/powerai",
  "  ddl@1.5.1 <- conda:wmlce/ddl",
  "  pytorch@1.3.1 <- conda:wmlce/pytorch",
  "  tensorflow@2.1.0 <- conda:wmlce/tensorflow-gpu",
  "  cuda@10.2.89 <- conda:wmlce/cudatoolkit-dev",
  "  spectrum-mpi@10.3 <- conda:wmlce/spectrum-mpi",
  "  gcc@7.3.0 <- conda:defaults/gxx_linux-ppc64le",
  "  horovod@0.18.2 <- build:horovod",
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
  "  HVD-055: its compiler wrapper calls IBM's xlC_r, whose options Horovod cannot take over (horovod@0.18.2, spectrum-mpi@10.3)",
  "    lifted by variable OMPI_CXX=g++",
  "    https://github.com/horovod/horovod/blob/v0.19.5/setup.py",
  "  HVD-057: has no bdist_wheel of its own, which building Horovod needs (horovod@0.18.2, setuptools@68.0.0)",
  "    lifted by built with wheel",
  "    https://github.com/pypa/setuptools/blob/7d531288/NEWS.rst (70.1.0)",
  "",
  "Known problems:",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.18.2)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
  "  TORCH-224: destroy_process_group() over gloo may hang where the last tensor was made by from_numpy() (pytorch@1.3.1)",
  "    fix: PyTorch 1.9 and later, or torch.tensor(array), which copies",
  "    https://github.com/pytorch/pytorch/issues/56297",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-005: its headers contradict those of glibc 2.42 (cospi, sinpi, rsqrt) (cuda@10.2.89)",
  "    depends on: glibc",
  "    fix: CUDA 13.1 and later, or an older glibc",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/cuda/package.py",
  "  CUDA-044: CUDA 10.2 needs a driver of 440.33 or later (cuda@10.2.89)",
  "    depends on: driver",
  "    fix: driver 440.33 or later, or an older CUDA",
  "    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  jsrun -n1 -r1 -g6 -a2 -c42 -bpacked:21 python PROGRAM.py",
}, "\n"))
whatis("Name: horovod-ddl-wmlce")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Horovod for TensorFlow and PyTorch in a conda environment of WMLCE, by IBM DDL")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/ccs/proj/envbuild/summit/ppc64le/horovod-ddl-wmlce/not-locked") then
  LmodError("horovod-ddl-wmlce: planned, but not built; to build it: envbuild create horovod-ddl-wmlce --site summit --arch ppc64le --root /ccs/proj/envbuild/summit/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
pushenv("CONDA_PREFIX", "/ccs/proj/envbuild/summit/ppc64le/horovod-ddl-wmlce/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/ccs/proj/envbuild/summit/ppc64le/horovod-ddl-wmlce/not-locked/bin")
pushenv("DDL_OPTIONS", "-mode p")

if mode() == "load" and (os.getenv("PYTHONPATH") or "") ~= "" then
  LmodMessage("horovod-ddl-wmlce: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH")
end
