#%Module1.0
# Environment allreduce, id not-locked, lock sha256 none
proc ModulesHelp {} {
  puts stderr "allreduce/1: An allreduce over MPI, and nothing else"
  puts stderr "For site local, x86_64. Environment not-locked."
  puts stderr ""
  puts stderr "Components:"
  puts stderr "  python@3.11.7 <- system:/usr/bin/python3.11"
  puts stderr "  numpy@1.26.4 <- pip:numpy"
  puts stderr "  mpich@5.0.2 <- pip:mpich"
  puts stderr "  distributed-dl-training@0.1.0 <- built in this environment"
  puts stderr ""
  puts stderr "Proved: nothing (tier rendered)."
}
module-whatis "Name: allreduce"
module-whatis "Version: 1"
module-whatis "Category: deep learning environment"
module-whatis "Description: An allreduce over MPI, and nothing else"
module-whatis "Proved: rendered, not tested"

if {[module-info mode load] && ![file isdirectory "/software/local/allreduce/abc"]} {
  puts stderr "allreduce: planned, but not built; to build it: envbuild create allreduce --site local --arch x86_64 --root /software/local"
  break
}

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
