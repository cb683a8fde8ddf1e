help([==[

Description
===========
The Open MPI Project is an open source MPI-3 implementation

More information
================
 - Homepage: https://www.open-mpi.org/
]==])

whatis([==[Description: The Open MPI Project is an open source MPI-3 implementation]==])
whatis([==[Homepage: https://www.open-mpi.org/]==])

local root = "@APPS@/OpenMPI/@OPENMPI@-GCC-12.2.0"

conflict("OpenMPI")

depends_on("GCC/12.2.0")

prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTOPENMPI", root)
setenv("EBVERSIONOPENMPI", "@OPENMPI@")
