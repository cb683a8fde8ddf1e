help([==[

Description
===========
Toolchain: GCC, CUDA and Open MPI


More information
================
 - Homepage: (none)
]==])

whatis([==[Name: gompic]==])
whatis([==[Version: 2019b]==])
whatis([==[Description: Toolchain: GCC, CUDA and Open MPI]==])
whatis([==[Homepage: (none)]==])

local root = "/sw/installed/gompic/2019b"

conflict("gompic")

if not ( isloaded("GCC/8.3.0") ) then
    load("GCC/8.3.0")
end

if not ( isloaded("CUDA/10.1.243-GCC-8.3.0") ) then
    load("CUDA/10.1.243-GCC-8.3.0")
end

if not ( isloaded("OpenMPI/3.1.4-gcccuda-2019b") ) then
    load("OpenMPI/3.1.4-gcccuda-2019b")
end

setenv("EBROOTGOMPIC", root)
setenv("EBVERSIONGOMPIC", "2019b")
setenv("EBDEVELGOMPIC", pathJoin(root, "easybuild/gompic-2019b-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
