#%Module1.0
# Environment allreduce-modules, id c4acc4ae3d54, lock sha256 c4acc4ae3d5498e431752f9bf62f87fe60c727bade3c47859b6ed2047eb86b1a
proc ModulesHelp {} {
  puts stderr "allreduce-modules/3: An allreduce over MPI, and nothing else"
  puts stderr "For site cluster, x86_64. Environment c4acc4ae3d54."
  puts stderr ""
  puts stderr "Components:"
  puts stderr "  python@3.11.7 <- system:/usr/bin/python3.11"
  puts stderr "  numpy@1.26.4 <- pip:numpy"
  puts stderr "  openmpi@4.1.5 <- module:OpenMPI/4.1.5-GCC-12.3.0"
  puts stderr "  distributed-dl-training@0.1.0 <- built in this environment"
  puts stderr ""
  puts stderr "Proved: nothing (tier rendered)."
  puts stderr ""
  puts stderr "Start a program on 2 ranks:"
  puts stderr "  mpiexec -n 2 --bind-to none --map-by slot python PROGRAM.py"
  puts stderr ""
  puts stderr "Loads the site's modules:"
  puts stderr "  load Python/3.11.3-GCCcore-12.3.0"
  puts stderr "  load OpenMPI/4.1.5-GCC-12.3.0"
  puts stderr "If the module system does not find them, first run: module use"
  puts stderr "  /apps/modules/all"
  puts stderr "  /apps/modules/extra"
}
module-whatis "Name: allreduce-modules"
module-whatis "Version: 3"
module-whatis "Category: deep learning environment"
module-whatis "Description: An allreduce over MPI, and nothing else"
module-whatis "Proved: rendered, not tested"

# Module systems before Environment Modules 5.1 know neither family nor pushenv and depends-on. With
# them, the module conflicts only with itself, and unloading unsets earlier values. A family also
# reserves a module name: the family envbuild is that of the tool.
if {[info commands family] ne ""} {
  family envbuild_environment
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
depends-on "OpenMPI/4.1.5-GCC-12.3.0"
pushenv VIRTUAL_ENV "/software/cluster/env/abc"
pushenv PYTHONNOUSERSITE "1"
prepend-path PATH "/software/cluster/env/abc/bin"
pushenv OMP_NUM_THREADS "1"
unsetenv PYTHONHOME
append-path MANPATH "/software/cluster/env/abc/share/man"

if {[module-info mode load]} {
  set missing {}
  foreach name [list \
    "GCC/12.3.0" \
    "GCCcore/12.3.0" \
    "OpenMPI/4.1.5-GCC-12.3.0" \
    "Python/3.11.3-GCCcore-12.3.0" \
  ] {
    if {![is-loaded $name]} { lappend missing $name }
  }
  if {[llength $missing]} {
    puts stderr [concat "allreduce-modules: not proved with these modules; run module purge first; not loaded:" $missing]
  }
}
