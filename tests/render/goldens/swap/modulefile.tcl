#%Module1.0
# Environment allreduce-swap, id 68140007cca9, lock sha256 68140007cca994b29716525610d1c2a09a123f120fef13cad7dd6c15d34a3426
proc ModulesHelp {} {
  puts stderr "allreduce-swap/3: An allreduce over MPI, and nothing else"
  puts stderr "For site taurus-ml, ppc64le. Environment 68140007cca9."
  puts stderr ""
  puts stderr "Components:"
  puts stderr "  python@3.11.7 <- system:/usr/bin/python3.11"
  puts stderr "  numpy@1.26.4 <- pip:numpy"
  puts stderr "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2018b"
  puts stderr "  distributed-dl-training@0.1.0 <- built in this environment"
  puts stderr ""
  puts stderr "Waived advisories:"
  puts stderr "  TEST-WAIVED: What is waived (openmpi@3.1.4, nccl@2.3.7)"
  puts stderr "    waived: measured on our fabric"
  puts stderr "    https://example.org/issues/1"
  puts stderr ""
  puts stderr "Known problems that a remedy solves:"
  puts stderr "  TEST-LIFTED: What is lifted (openmpi@3.1.4, nccl@2.3.7)"
  puts stderr "    lifted by variable OMPI_MCA_btl=^vader"
  puts stderr "    https://example.org/issues/1"
  puts stderr ""
  puts stderr "Known problems:"
  puts stderr "  TEST-WARNING: What is warning (openmpi@3.1.4, nccl@2.3.7)"
  puts stderr "    fix: take another"
  puts stderr "    https://example.org/issues/1"
  puts stderr ""
  puts stderr "Undecided, because facts are not stated:"
  puts stderr "  TEST-UNKNOWN: What is unknown (openmpi@3.1.4, nccl@2.3.7)"
  puts stderr "    depends on: network"
  puts stderr "    fix: take another"
  puts stderr "    https://example.org/issues/1"
  puts stderr ""
  puts stderr "Proved: several ranks, native, 2025-01-31T12:00:00Z"
  puts stderr "  smoke test passed: 2 ranks in 12.3 s"
  puts stderr "  site taurus-ml, ppc64le, nodes: node1"
  puts stderr "  MPI: MPICH 5.0.2"
  puts stderr "  libmpi: /software/mpich/lib/libmpi.so.12 (from prefix)"
  puts stderr "  allreduce: 2 of 2 checks passed"
  puts stderr "  broadcast: 1 of 1 checks passed"
  puts stderr ""
  puts stderr "Start a program on 2 ranks:"
  puts stderr "  mpiexec -n 2 --bind-to none --map-by slot --mca pml ob1 --mca btl '^openib' python PROGRAM.py"
  puts stderr ""
  puts stderr "Loads the site's modules:"
  puts stderr "  load modenv/ml"
  puts stderr "  load NCCL/2.3.7-fosscuda-2018b"
  puts stderr "  unload OpenMPI/3.1.1-gcccuda-2018b"
  puts stderr "  load OpenMPI/3.1.4-gcccuda-2018b"
  puts stderr "If the module system does not find them, first run: module use"
  puts stderr "  /sw/modules/env"
  puts stderr ""
  puts stderr "The module system then warns that OpenMPI/3.1.1-gcccuda-2018b is missing. This is intended."
  puts stderr "Unloading this module does not restore it, and modules that loaded it may remain."
  puts stderr "To reset the shell, run module purge or start a new shell."
}
module-whatis "Name: allreduce-swap"
module-whatis "Version: 3"
module-whatis "Category: deep learning environment"
module-whatis "Description: An allreduce over MPI, and nothing else"
module-whatis "Proved: several ranks, 2025-01-31T12:00:00Z"
module-whatis "Waived: TEST-WAIVED"

# Module systems before Environment Modules 5.1 know neither family nor pushenv and depends-on. With
# them, the module conflicts only with itself, and unloading unsets earlier values. A family also
# reserves a module name: the family envbuild is that of the tool.
if {[info commands family] ne ""} {
  family envbuild_environment
} else {
  conflict "allreduce-swap"
}
if {[info commands pushenv] eq ""} {
  interp alias {} pushenv {} setenv
}
if {[info commands depends-on] eq ""} {
  interp alias {} depends-on {} prereq
}

depends-on "modenv/ml"
depends-on "NCCL/2.3.7-fosscuda-2018b"
if {[module-info mode load]} { module unload "OpenMPI/3.1.1-gcccuda-2018b" }
depends-on "OpenMPI/3.1.4-gcccuda-2018b"
pushenv VIRTUAL_ENV "/software/ml/env/abc"
pushenv PYTHONNOUSERSITE "1"
prepend-path PATH "/software/ml/env/abc/bin"

if {[module-info mode load]} {
  set missing {}
  foreach name [list \
    "CUDA/9.2.88-GCC-7.3.0-2.30" \
    "GCC/7.3.0-2.30" \
    "GCCcore/7.3.0" \
    "NCCL/2.3.7-fosscuda-2018b" \
    "OpenMPI/3.1.4-gcccuda-2018b" \
    "fosscuda/2018b" \
    "gcccuda/2018b" \
    "modenv/ml" \
  ] {
    if {![is-loaded $name]} { lappend missing $name }
  }
  if {[llength $missing]} {
    puts stderr [concat "allreduce-swap: not proved with these modules; run module purge first; not loaded:" $missing]
  }
}
