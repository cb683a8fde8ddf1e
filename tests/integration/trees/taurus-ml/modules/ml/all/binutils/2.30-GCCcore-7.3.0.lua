help([==[

Description
===========
Linker, assembler and other tools for binaries


More information
================
 - Homepage: https://directory.fsf.org/project/binutils/
]==])

whatis([==[Name: binutils]==])
whatis([==[Version: 2.30-GCCcore-7.3.0]==])
whatis([==[Description: Linker, assembler and other tools for binaries]==])
whatis([==[Homepage: https://directory.fsf.org/project/binutils/]==])

local root = "/sw/installed/binutils/2.30-GCCcore-7.3.0"

conflict("binutils")

if not ( isloaded("GCCcore/7.3.0") ) then
    load("GCCcore/7.3.0")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTBINUTILS", root)
setenv("EBVERSIONBINUTILS", "2.30")
setenv("EBDEVELBINUTILS", pathJoin(root, "easybuild/binutils-2.30-GCCcore-7.3.0-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
