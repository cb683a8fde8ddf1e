help([==[

Description
===========
An MPI-3 implementation


More information
================
 - Homepage: https://www.open-mpi.org/
]==])

whatis([==[Name: OpenMPI]==])
whatis([==[Version: 3.1.1-gcccuda-2018b]==])
whatis([==[Description: An MPI-3 implementation]==])
whatis([==[Homepage: https://www.open-mpi.org/]==])

local root = "/sw/installed/OpenMPI/3.1.1-gcccuda-2018b"

conflict("OpenMPI")

if not ( isloaded("gcccuda/2018b") ) then
    load("gcccuda/2018b")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
setenv("EBROOTOPENMPI", root)
setenv("EBVERSIONOPENMPI", "3.1.1")
setenv("EBDEVELOPENMPI", pathJoin(root, "easybuild/OpenMPI-3.1.1-gcccuda-2018b-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
