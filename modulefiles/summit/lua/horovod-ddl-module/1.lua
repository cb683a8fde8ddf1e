-- Environment horovod-ddl-module, id not-locked, lock sha256 none
help(table.concat({
  "horovod-ddl-module/1: Horovod on IBM DDL, from the site's WMLCE module",
  "For site summit, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.6 <- module:ibm-wml-ce/1.6.2-5",
  "  wmlce@1.6.2 <- module:ibm-wml-ce/1.6.2-5",
  "  ddl@1.5.0 <- module:ibm-wml-ce/1.6.2-5",
  "  tensorflow@1.15 <- module:ibm-wml-ce/1.6.2-5",
  "  pytorch@1.2.0 <- module:ibm-wml-ce/1.6.2-5",
  "  spectrum-mpi@10.3.1.2 <- module:spectrum-mpi/10.3.1.2-20200121",
  "  horovod@0.18.2 <- module:ibm-wml-ce/1.6.2-5",
  "  numpy@1.16.0 <- module:ibm-wml-ce/1.6.2-5",
  "  mpi4py@4.0.3 <- build:mpi4py",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Known problems:",
  "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.18.2)",
  "    fix: Horovod 0.24.0 and later",
  "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py",
  "  TORCH-224: destroy_process_group() over gloo may hang where the last tensor was made by from_numpy() (pytorch@1.2.0)",
  "    fix: PyTorch 1.9 and later, or torch.tensor(array), which copies",
  "    https://github.com/pytorch/pytorch/issues/56297",
  "",
  "Undecided, because facts are not stated:",
  "  CUDA-053: what is built with CUDA 10.1 needs a driver of 418.39 or later (cudatoolkit@10.1.243)",
  "    depends on: driver",
  "    fix: driver 418.39 or later, or packages for an older CUDA",
  "    https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  jsrun -n1 -r1 -g6 -a2 -c42 -bpacked:21 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load ibm-wml-ce/1.6.2-5",
  "  load spectrum-mpi/10.3.1.2-20200121",
  "If the module system does not find them, first run: module use",
  "  /sw/summit/modulefiles/core",
}, "\n"))
whatis("Name: horovod-ddl-module")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: Horovod on IBM DDL, from the site's WMLCE module")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/ccs/proj/envbuild/summit/ppc64le/horovod-ddl-module/not-locked") then
  LmodError("horovod-ddl-module: planned, but not built; to build it: envbuild create horovod-ddl-module --site summit --arch ppc64le --root /ccs/proj/envbuild/summit/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("ibm-wml-ce/1.6.2-5")
depends_on("spectrum-mpi/10.3.1.2-20200121")
pushenv("VIRTUAL_ENV", "/ccs/proj/envbuild/summit/ppc64le/horovod-ddl-module/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/ccs/proj/envbuild/summit/ppc64le/horovod-ddl-module/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "ibm-wml-ce/1.6.2-5",
    "spectrum-mpi/10.3.1.2-20200121",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("horovod-ddl-module: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
