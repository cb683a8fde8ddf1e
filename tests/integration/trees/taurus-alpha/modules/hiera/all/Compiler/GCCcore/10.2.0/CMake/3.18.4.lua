help([==[

Description
===========
Generates build systems


More information
================
 - Homepage: https://www.cmake.org
]==])

whatis([==[Name: CMake]==])
whatis([==[Version: 3.18.4-GCCcore-10.2.0]==])
whatis([==[Description: Generates build systems]==])
whatis([==[Homepage: https://www.cmake.org]==])

local root = "/sw/installed/CMake/3.18.4-GCCcore-10.2.0"

conflict("CMake")

prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTCMAKE", root)
setenv("EBVERSIONCMAKE", "3.18.4")
setenv("EBDEVELCMAKE", pathJoin(root, "easybuild/CMake-3.18.4-GCCcore-10.2.0-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
