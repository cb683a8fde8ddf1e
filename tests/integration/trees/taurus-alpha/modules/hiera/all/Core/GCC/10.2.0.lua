help([==[

Description
===========
GNU compilers for C, C++ and Fortran, with matching binutils


More information
================
 - Homepage: https://gcc.gnu.org/
]==])

whatis([==[Name: GCC]==])
whatis([==[Version: 10.2.0]==])
whatis([==[Description: GNU compilers for C, C++ and Fortran, with matching binutils]==])
whatis([==[Homepage: https://gcc.gnu.org/]==])

local root = "/sw/installed/GCC/10.2.0"

conflict("GCC")

if not ( isloaded("GCCcore/10.2.0") ) then
    load("GCCcore/10.2.0")
end

if not ( isloaded("binutils/2.35") ) then
    load("binutils/2.35")
end

local trees = myFileName():gsub("/hiera/all/.*$", "/hiera/all")
prepend_path("MODULEPATH", pathJoin(trees, "Compiler/GCC/10.2.0"))

setenv("EBROOTGCC", root)
setenv("EBVERSIONGCC", "10.2.0")
setenv("EBDEVELGCC", pathJoin(root, "easybuild/GCC-10.2.0-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
