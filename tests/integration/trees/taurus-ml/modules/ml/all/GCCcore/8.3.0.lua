help([==[

Description
===========
GNU compilers that all other toolchains of this generation stand on


More information
================
 - Homepage: https://gcc.gnu.org/
]==])

whatis([==[Name: GCCcore]==])
whatis([==[Version: 8.3.0]==])
whatis([==[Description: GNU compilers that all other toolchains of this generation stand on]==])
whatis([==[Homepage: https://gcc.gnu.org/]==])

local root = "/sw/installed/GCCcore/8.3.0"

conflict("GCCcore")

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib64"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTGCCCORE", root)
setenv("EBVERSIONGCCCORE", "8.3.0")
setenv("EBDEVELGCCCORE", pathJoin(root, "easybuild/GCCcore-8.3.0-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
