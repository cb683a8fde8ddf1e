-- Environment tensorflow-distribute, id not-locked, lock sha256 none
help(table.concat({
  "tensorflow-distribute/1: TensorFlow 2 with its own distribution strategies",
  "For site summit, ppc64le. Environment not-locked.",
  "",
  "Components:",
  "  python@3.9 <- module:open-ce/1.10.0-py39-ibm",
  "  tensorflow@2.13.0 <- module:open-ce/1.10.0-py39-ibm",
  "  numpy@1.24.3 <- build:numpy",
  "  mpi4py@4.1.2 <- build:mpi4py",
  "  spectrum-mpi@10.4.0.3 <- module:spectrum-mpi/10.4.0.3-20210112",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Proved: nothing (tier rendered).",
  "",
  "Start a program on 2 ranks:",
  "  jsrun -n1 -r1 -g6 -a2 -c42 -bpacked:21 python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load open-ce/1.10.0-py39-ibm",
  "  load spectrum-mpi/10.4.0.3-20210112",
  "If the module system does not find them, first run: module use",
  "  /sw/summit/modulefiles/core",
}, "\n"))
whatis("Name: tensorflow-distribute")
whatis("Version: 1")
whatis("Category: deep learning environment")
whatis("Description: TensorFlow 2 with its own distribution strategies")
whatis("Proved: rendered, not tested")

if mode() == "load" and not isDir("/ccs/proj/envbuild/summit/ppc64le/tensorflow-distribute/not-locked") then
  LmodError("tensorflow-distribute: planned, but not built; to build it: envbuild create tensorflow-distribute --site summit --arch ppc64le --root /ccs/proj/envbuild/summit/ppc64le")
end

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("open-ce/1.10.0-py39-ibm")
depends_on("spectrum-mpi/10.4.0.3-20210112")
pushenv("VIRTUAL_ENV", "/ccs/proj/envbuild/summit/ppc64le/tensorflow-distribute/not-locked")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/ccs/proj/envbuild/summit/ppc64le/tensorflow-distribute/not-locked/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "open-ce/1.10.0-py39-ibm",
    "spectrum-mpi/10.4.0.3-20210112",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("tensorflow-distribute: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
