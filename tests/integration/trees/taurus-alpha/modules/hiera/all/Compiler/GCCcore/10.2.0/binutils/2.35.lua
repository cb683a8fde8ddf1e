help([==[

Description
===========
Linker, assembler and other tools for binaries


More information
================
 - Homepage: https://directory.fsf.org/project/binutils/
]==])

whatis([==[Name: binutils]==])
whatis([==[Version: 2.35-GCCcore-10.2.0]==])
whatis([==[Description: Linker, assembler and other tools for binaries]==])
whatis([==[Homepage: https://directory.fsf.org/project/binutils/]==])

local root = "/sw/installed/binutils/2.35-GCCcore-10.2.0"

conflict("binutils")

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOTBINUTILS", root)
setenv("EBVERSIONBINUTILS", "2.35")
setenv("EBDEVELBINUTILS", pathJoin(root, "easybuild/binutils-2.35-GCCcore-10.2.0-easybuild-devel"))

-- Built with EasyBuild version 4.3.4
