help([==[

Description
===========
Generates build systems


More information
================
 - Homepage: https://www.cmake.org
]==])

whatis([==[Name: CMake]==])
whatis([==[Version: 3.11.4-GCCcore-7.3.0]==])
whatis([==[Description: Generates build systems]==])
whatis([==[Homepage: https://www.cmake.org]==])

local root = "/sw/installed/CMake/3.11.4-GCCcore-7.3.0"

conflict("CMake")

if not ( isloaded("GCCcore/7.3.0") ) then
    load("GCCcore/7.3.0")
end

prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTCMAKE", root)
setenv("EBVERSIONCMAKE", "3.11.4")
setenv("EBDEVELCMAKE", pathJoin(root, "easybuild/CMake-3.11.4-GCCcore-7.3.0-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
