help([==[

Description
===========
GNU compilers for C, C++ and Fortran, with matching binutils


More information
================
 - Homepage: https://gcc.gnu.org/
]==])

whatis([==[Name: GCC]==])
whatis([==[Version: 7.3.0-2.30]==])
whatis([==[Description: GNU compilers for C, C++ and Fortran, with matching binutils]==])
whatis([==[Homepage: https://gcc.gnu.org/]==])

local root = "/sw/installed/GCC/7.3.0-2.30"

conflict("GCC")

if not ( isloaded("GCCcore/7.3.0") ) then
    load("GCCcore/7.3.0")
end

if not ( isloaded("binutils/2.30-GCCcore-7.3.0") ) then
    load("binutils/2.30-GCCcore-7.3.0")
end

setenv("EBROOTGCC", root)
setenv("EBVERSIONGCC", "7.3.0-2.30")
setenv("EBDEVELGCC", pathJoin(root, "easybuild/GCC-7.3.0-2.30-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
