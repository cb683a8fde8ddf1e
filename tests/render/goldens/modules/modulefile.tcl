#%Module1.0
# Environment allreduce-modules, id e41656b7e1fd, lock sha256 e41656b7e1fdf0e1a0c68b9e6065c369a7d454a0c5a892e629b0e51ae4503c3b
proc ModulesHelp {} {
  puts stderr "allreduce-modules/3: An allreduce over MPI, and nothing else"
  puts stderr "For site cluster, x86_64. Environment e41656b7e1fd."
  puts stderr ""
  puts stderr "Components:"
  puts stderr "  python@3.11.7 <- system:/usr/bin/python3.11"
  puts stderr "  numpy@1.26.4 <- pip:numpy"
  puts stderr "  mpich@5.0.2 <- pip:mpich"
  puts stderr "  distributed-dl-training@0.1.0 <- built in this environment"
  puts stderr ""
  puts stderr "Proved: nothing yet (tier rendered)."
  puts stderr ""
  puts stderr "Start a program on two ranks:"
  puts stderr "  mpiexec -n 2 python PROGRAM.py"
  puts stderr ""
  puts stderr "Loads the site's modules:"
  puts stderr "  Python/3.11.3-GCCcore-12.3.0"
  puts stderr "  OpenMPI/4.1.4-GCC-12.2.0"
  puts stderr "If one is unknown, first: module use"
  puts stderr "  /apps/modules/all"
  puts stderr "  /apps/modules/extra"
  puts stderr ""
  puts stderr "Loading replaces what its own modules bring:"
  puts stderr "  GCCcore/12.3.0"
  puts stderr "so unloading does not give back exactly what was loaded before: module reset,"
  puts stderr "or a new shell, does."
}
module-whatis "Name: allreduce-modules"
module-whatis "Version: 3"
module-whatis "Category: deep learning environment"
module-whatis "Description: An allreduce over MPI, and nothing else"
module-whatis "Proved: rendered, nothing was run"

# Module systems before Environment Modules 5.1 know neither family nor pushenv and depends-on:
# there this conflicts with itself only, and unloading unsets what was set before.
if {[info commands family] ne ""} {
  family envbuild
} else {
  conflict "allreduce-modules"
}
if {[info commands pushenv] eq ""} {
  interp alias {} pushenv {} setenv
}
if {[info commands depends-on] eq ""} {
  interp alias {} depends-on {} prereq
}

depends-on "Python/3.11.3-GCCcore-12.3.0"
depends-on "OpenMPI/4.1.4-GCC-12.2.0"
pushenv VIRTUAL_ENV "/software/cluster/env/abc"
pushenv PYTHONNOUSERSITE "1"
prepend-path PATH "/software/cluster/env/abc/bin"
pushenv OMP_NUM_THREADS "1"
unsetenv PYTHONHOME
append-path MANPATH "/software/cluster/env/abc/share/man"
