#%Module1.0
# horovod-nccl is not published in /projects/envbuild/taurus-ml/ppc64le; run envbuild create horovod-nccl --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le
# Environment horovod-nccl, id not-locked, lock sha256 none
proc ModulesHelp {} {
  puts stderr "horovod-nccl/1: Horovod for TensorFlow, NCCL allreduce inside and MPI between nodes"
  puts stderr "For site taurus-ml, ppc64le. Environment not-locked."
  puts stderr ""
  puts stderr "Components:"
  puts stderr "  python@3.6 <- module:PythonAnaconda/3.6"
  puts stderr "  tensorflow@1.14.0 <- module:TensorFlow/1.14.0-PythonAnaconda-3.6"
  puts stderr "  nccl@2.3.7 <- module:NCCL/2.3.7-fosscuda-2018b"
  puts stderr "  openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2018b"
  puts stderr "  cmake@3.12.1 <- module:CMake/3.12.1-GCCcore-7.3.0"
  puts stderr "  horovod@0.19.5 <- build:horovod"
  puts stderr "  numpy@1.14.5 <- module:TensorFlow/1.14.0-PythonAnaconda-3.6"
  puts stderr "  mpi4py@4.0.3 <- build:mpi4py"
  puts stderr "  cloudpickle@2.2.1 <- pip:cloudpickle"
  puts stderr "  psutil@7.2.2 <- build:psutil"
  puts stderr "  pyyaml@6.0.1 <- build:pyyaml"
  puts stderr "  cffi@1.15.1 <- pip:cffi"
  puts stderr "  six@1.17.0 <- pip:six"
  puts stderr "  distributed-dl-training@0.1.0 <- built in this environment"
  puts stderr ""
  puts stderr "Known problems that a remedy solves:"
  puts stderr "  HVD-036: looks for the static NCCL only, and fails where there is none (horovod@0.19.5, nccl@2.3.7)"
  puts stderr "    lifted by flag HOROVOD_NCCL_LINK=SHARED"
  puts stderr "    https://github.com/horovod/horovod/blob/2626dc87/CHANGELOG.md (0.25.0, #3500)"
  puts stderr "  HVD-057: has no bdist_wheel of its own, which building Horovod needs (horovod@0.19.5, setuptools@59.6.0)"
  puts stderr "    lifted by built with wheel"
  puts stderr "    https://github.com/pypa/setuptools/blob/7d531288/NEWS.rst (70.1.0)"
  puts stderr ""
  puts stderr "Known problems:"
  puts stderr "  CUDA-017: Spack takes it for refused by nvcc on ppc64le (cuda@9.2.88, gcc@7.3.0)"
  puts stderr "    fix: an older GCC or a newer CUDA; nvcc takes it at your risk with -allow-unsupported-compiler"
  puts stderr "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/build_systems/cuda.py"
  puts stderr "  HVD-039: has the vulnerability CVE-2022-0315 (horovod@0.19.5)"
  puts stderr "    fix: Horovod 0.24.0 and later"
  puts stderr "    https://github.com/spack/spack-packages/blob/1e8cf059/repos/spack_repo/builtin/packages/py_horovod/package.py"
  puts stderr "  HVD-042: exports symbols of hwloc, on which Open MPI can crash (openmpi@3.1.4, tensorflow@1.14.0)"
  puts stderr "    fix: LD_PRELOAD of the system's libhwloc, where a crash names hwloc"
  puts stderr "    https://github.com/horovod/horovod/blob/2626dc87/docs/troubleshooting.rst"
  puts stderr ""
  puts stderr "Undecided, because facts are not stated:"
  puts stderr "  CUDA-047: CUDA 9.2 needs a driver of 396.26 or later (cuda@9.2.88)"
  puts stderr "    depends on: driver"
  puts stderr "    fix: driver 396.26 or later, or an older CUDA"
  puts stderr "    https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html"
  puts stderr ""
  puts stderr "Proved: nothing (tier rendered)."
  puts stderr ""
  puts stderr "Start a program on 2 ranks:"
  puts stderr "  srun --mpi=pmix --nodes=1 --ntasks=2 --ntasks-per-node=2 --kill-on-bad-exit=1 python PROGRAM.py"
  puts stderr ""
  puts stderr "Loads the site's modules:"
  puts stderr "  load modenv/ml"
  puts stderr "  load CMake/3.12.1-GCCcore-7.3.0"
  puts stderr "  load NCCL/2.3.7-fosscuda-2018b"
  puts stderr "  load TensorFlow/1.14.0-PythonAnaconda-3.6"
  puts stderr "  unload OpenMPI/3.1.1-gcccuda-2018b"
  puts stderr "  load OpenMPI/3.1.4-gcccuda-2018b"
  puts stderr "If the module system does not find them, first run: module use"
  puts stderr "  /sw/modules/taurus/environment"
  puts stderr ""
  puts stderr "The module system then warns that OpenMPI/3.1.1-gcccuda-2018b is missing. This is intended."
  puts stderr "Unloading this module does not restore it, and modules that loaded it may remain."
  puts stderr "To reset the shell, run module purge or start a new shell."
}
module-whatis "Name: horovod-nccl"
module-whatis "Version: 1"
module-whatis "Category: deep learning environment"
module-whatis "Description: Horovod for TensorFlow, NCCL allreduce inside and MPI between nodes"
module-whatis "Proved: rendered, not tested"

if {[module-info mode load] && ![file isdirectory "/projects/envbuild/taurus-ml/ppc64le/horovod-nccl/not-locked"]} {
  puts stderr "horovod-nccl: planned, but not built; to build it: envbuild create horovod-nccl --site taurus-ml --arch ppc64le --root /projects/envbuild/taurus-ml/ppc64le"
  break
}

# Module systems before Environment Modules 5.1 know neither family nor pushenv and depends-on. With
# them, the module conflicts only with itself, and unloading unsets earlier values. A family also
# reserves a module name: the family envbuild is that of the tool.
if {[info commands family] ne ""} {
  family envbuild_environment
} else {
  conflict "horovod-nccl"
}
if {[info commands pushenv] eq ""} {
  interp alias {} pushenv {} setenv
}
if {[info commands depends-on] eq ""} {
  interp alias {} depends-on {} prereq
}

depends-on "modenv/ml"
depends-on "CMake/3.12.1-GCCcore-7.3.0"
depends-on "NCCL/2.3.7-fosscuda-2018b"
depends-on "TensorFlow/1.14.0-PythonAnaconda-3.6"
if {[module-info mode load]} { module unload "OpenMPI/3.1.1-gcccuda-2018b" }
depends-on "OpenMPI/3.1.4-gcccuda-2018b"
pushenv VIRTUAL_ENV "/projects/envbuild/taurus-ml/ppc64le/horovod-nccl/not-locked"
pushenv PYTHONNOUSERSITE "1"
prepend-path PATH "/projects/envbuild/taurus-ml/ppc64le/horovod-nccl/not-locked/bin"

if {[module-info mode load]} {
  set missing {}
  foreach name [list \
    "CMake/3.12.1-GCCcore-7.3.0" \
    "CUDA/9.2.88-GCC-7.3.0-2.30" \
    "FFTW/3.3.8-gompic-2018b" \
    "GCC/7.3.0-2.30" \
    "GCCcore/7.3.0" \
    "NCCL/2.3.7-fosscuda-2018b" \
    "OpenBLAS/0.3.1-GCC-7.3.0-2.30" \
    "OpenMPI/3.1.4-gcccuda-2018b" \
    "PythonAnaconda/3.6" \
    "ScaLAPACK/2.0.2-gompic-2018b-OpenBLAS-0.3.1" \
    "TensorFlow/1.14.0-PythonAnaconda-3.6" \
    "binutils/2.30-GCCcore-7.3.0" \
    "fosscuda/2018b" \
    "gcccuda/2018b" \
    "gompic/2018b" \
    "modenv/ml" \
  ] {
    if {![is-loaded $name]} { lappend missing $name }
  }
  if {[llength $missing]} {
    puts stderr [concat "horovod-nccl: not proved with these modules; run module purge first; not loaded:" $missing]
  }
}
