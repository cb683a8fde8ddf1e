#%Module1.0
# Environment allreduce, id 724adb282ad3, lock sha256 724adb282ad3d80abe543886fd9d9586fc27ece3f688d6e270a9e2c17c4bfaeb
proc ModulesHelp {} {
  puts stderr "allreduce/3: An allreduce over MPI, and nothing else"
  puts stderr "For site local, x86_64. Environment 724adb282ad3."
  puts stderr ""
  puts stderr "Components:"
  puts stderr "  python@3.11.7 <- system:/usr/bin/python3.11"
  puts stderr "  numpy@1.26.4 <- pip:numpy"
  puts stderr "  mpich@5.0.2 <- pip:mpich"
  puts stderr "  distributed-dl-training@0.1.0 <- built in this environment"
  puts stderr ""
  puts stderr "Proved: several ranks, native, 2025-01-31T12:00:00Z"
  puts stderr "  smoke test passed: 2 ranks in 12.3 s"
  puts stderr "  site local, x86_64, nodes: node1"
  puts stderr "  MPI: MPICH 5.0.2"
  puts stderr "  libmpi: /software/mpich/lib/libmpi.so.12 (from prefix)"
  puts stderr "  allreduce: 2 of 2 checks passed"
  puts stderr "  broadcast: 1 of 1 checks passed"
  puts stderr ""
  puts stderr "Start a program on 2 ranks:"
  puts stderr "  mpiexec -n 2 python PROGRAM.py"
}
module-whatis "Name: allreduce"
module-whatis "Version: 3"
module-whatis "Category: deep learning environment"
module-whatis "Description: An allreduce over MPI, and nothing else"
module-whatis "Proved: several ranks, 2025-01-31T12:00:00Z"

# Module systems before Environment Modules 5.1 know neither family nor pushenv and depends-on. With
# them, the module conflicts only with itself, and unloading unsets earlier values. A family also
# reserves a module name: the family envbuild is that of the tool.
if {[info commands family] ne ""} {
  family envbuild_environment
} else {
  conflict "allreduce"
}
if {[info commands pushenv] eq ""} {
  interp alias {} pushenv {} setenv
}
if {[info commands depends-on] eq ""} {
  interp alias {} depends-on {} prereq
}

pushenv VIRTUAL_ENV "/software/local/allreduce/abc"
pushenv PYTHONNOUSERSITE "1"
prepend-path PATH "/software/local/allreduce/abc/bin"

if {[module-info mode load] && [info exists env(PYTHONPATH)] && $env(PYTHONPATH) ne ""} {
  puts stderr "allreduce: packages in PYTHONPATH come before this environment's own; unset PYTHONPATH"
}
