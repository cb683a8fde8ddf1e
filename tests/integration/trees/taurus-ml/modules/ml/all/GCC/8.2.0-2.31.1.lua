help([==[

Description
===========
GNU compilers for C, C++ and Fortran, with matching binutils


More information
================
 - Homepage: https://gcc.gnu.org/
]==])

whatis([==[Name: GCC]==])
whatis([==[Version: 8.2.0-2.31.1]==])
whatis([==[Description: GNU compilers for C, C++ and Fortran, with matching binutils]==])
whatis([==[Homepage: https://gcc.gnu.org/]==])

local root = "/sw/installed/GCC/8.2.0-2.31.1"

conflict("GCC")

if not ( isloaded("GCCcore/8.2.0") ) then
    load("GCCcore/8.2.0")
end

if not ( isloaded("binutils/2.31.1-GCCcore-8.2.0") ) then
    load("binutils/2.31.1-GCCcore-8.2.0")
end

setenv("EBROOTGCC", root)
setenv("EBVERSIONGCC", "8.2.0-2.31.1")
setenv("EBDEVELGCC", pathJoin(root, "easybuild/GCC-8.2.0-2.31.1-easybuild-devel"))

-- Built with EasyBuild version 3.9.4
