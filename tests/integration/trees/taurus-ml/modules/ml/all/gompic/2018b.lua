help([==[

Description
===========
Toolchain: GCC, CUDA and Open MPI


More information
================
 - Homepage: (none)
]==])

whatis([==[Name: gompic]==])
whatis([==[Version: 2018b]==])
whatis([==[Description: Toolchain: GCC, CUDA and Open MPI]==])
whatis([==[Homepage: (none)]==])

local root = "/sw/installed/gompic/2018b"

conflict("gompic")

if not ( isloaded("GCC/7.3.0-2.30") ) then
    load("GCC/7.3.0-2.30")
end

if not ( isloaded("CUDA/9.2.88-GCC-7.3.0-2.30") ) then
    load("CUDA/9.2.88-GCC-7.3.0-2.30")
end

if not ( isloaded("OpenMPI/3.1.1-gcccuda-2018b") ) then
    load("OpenMPI/3.1.1-gcccuda-2018b")
end

setenv("EBROOTGOMPIC", root)
setenv("EBVERSIONGOMPIC", "2018b")
setenv("EBDEVELGOMPIC", pathJoin(root, "easybuild/gompic-2018b-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
