help([==[

Description
===========
An MPI-3 implementation


More information
================
 - Homepage: https://www.open-mpi.org/
]==])

whatis([==[Name: OpenMPI]==])
whatis([==[Version: 4.0.5-gcccuda-2020b]==])
whatis([==[Description: An MPI-3 implementation]==])
whatis([==[Homepage: https://www.open-mpi.org/]==])

local root = "/sw/installed/OpenMPI/4.0.5-gcccuda-2020b"

conflict("OpenMPI")

local trees = myFileName():gsub("/hiera/all/.*$", "/hiera/all")
prepend_path("MODULEPATH", pathJoin(trees, "MPI/GCC-CUDA/10.2.0-11.1.1/OpenMPI/4.0.5"))

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
setenv("EBROOTOPENMPI", root)
setenv("EBVERSIONOPENMPI", "4.0.5")
setenv("EBDEVELOPENMPI", pathJoin(root, "easybuild/OpenMPI-4.0.5-gcccuda-2020b-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
