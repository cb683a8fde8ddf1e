-- Environment allreduce-swap, id 68140007cca9, lock sha256 68140007cca994b29716525610d1c2a09a123f120fef13cad7dd6c15d34a3426
help(table.concat({
  "allreduce-swap/3: An allreduce over MPI, and nothing else",
  "For site taurus-ml, ppc64le. Environment 68140007cca9.",
  "",
  "Components:",
  "  python@3.11.7 <- system:/usr/bin/python3.11",
  "  numpy@1.26.4 <- pip:numpy",
  "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2018b",
  "  distributed-dl-training@0.1.0 <- built in this environment",
  "",
  "Waived advisories:",
  "  TEST-WAIVED: What is waived (openmpi@3.1.4, nccl@2.3.7)",
  "    waived: measured on our fabric",
  "    https://example.org/issues/1",
  "",
  "Known problems that a remedy solves:",
  "  TEST-LIFTED: What is lifted (openmpi@3.1.4, nccl@2.3.7)",
  "    lifted by variable OMPI_MCA_btl=^vader",
  "    https://example.org/issues/1",
  "",
  "Known problems:",
  "  TEST-WARNING: What is warning (openmpi@3.1.4, nccl@2.3.7)",
  "    fix: take another",
  "    https://example.org/issues/1",
  "",
  "Undecided, because facts are not stated:",
  "  TEST-UNKNOWN: What is unknown (openmpi@3.1.4, nccl@2.3.7)",
  "    depends on: network",
  "    fix: take another",
  "    https://example.org/issues/1",
  "",
  "Proved: several ranks, native, 2025-01-31T12:00:00Z",
  "  smoke test passed: 2 ranks in 12.3 s",
  "  site taurus-ml, ppc64le, nodes: node1",
  "  MPI: MPICH 5.0.2",
  "  libmpi: /software/mpich/lib/libmpi.so.12 (from prefix)",
  "  allreduce: 2 of 2 checks passed",
  "  broadcast: 1 of 1 checks passed",
  "",
  "Start a program on 2 ranks:",
  "  mpiexec -n 2 --bind-to none --map-by slot --mca pml ob1 --mca btl '^openib' python PROGRAM.py",
  "",
  "Loads the site's modules:",
  "  load modenv/ml",
  "  load NCCL/2.3.7-fosscuda-2018b",
  "  unload OpenMPI/3.1.1-gcccuda-2018b",
  "  load OpenMPI/3.1.4-gcccuda-2018b",
  "If the module system does not find them, first run: module use",
  "  /sw/modules/env",
  "",
  "The module system then warns that OpenMPI/3.1.1-gcccuda-2018b is missing. This is intended.",
  "Unloading this module does not restore it, and modules that loaded it may remain.",
  "To reset the shell, run module purge or start a new shell.",
}, "\n"))
whatis("Name: allreduce-swap")
whatis("Version: 3")
whatis("Category: deep learning environment")
whatis("Description: An allreduce over MPI, and nothing else")
whatis("Proved: several ranks, 2025-01-31T12:00:00Z")
whatis("Waived: TEST-WAIVED")

-- Two environments of envbuild exclude each other.
family("envbuild")
depends_on("modenv/ml")
depends_on("NCCL/2.3.7-fosscuda-2018b")
if mode() ~= "unload" then unload("OpenMPI/3.1.1-gcccuda-2018b") end
depends_on("OpenMPI/3.1.4-gcccuda-2018b")
pushenv("VIRTUAL_ENV", "/software/ml/env/abc")
pushenv("PYTHONNOUSERSITE", "1")
prepend_path("PATH", "/software/ml/env/abc/bin")

if mode() == "load" then
  local missing = {}
  for _, name in ipairs({
    "CUDA/9.2.88-GCC-7.3.0-2.30",
    "GCC/7.3.0-2.30",
    "GCCcore/7.3.0",
    "NCCL/2.3.7-fosscuda-2018b",
    "OpenMPI/3.1.4-gcccuda-2018b",
    "fosscuda/2018b",
    "gcccuda/2018b",
    "modenv/ml",
  }) do
    if not isloaded(name) then
      missing[#missing + 1] = name
    end
  end
  if #missing > 0 then
    LmodMessage("allreduce-swap: not proved with these modules; run module purge first; not loaded:" .. " " .. table.concat(missing, " "))
  end
end
