help([==[

Description
===========
Toolchain: GCC, CUDA and Open MPI


More information
================
 - Homepage: (none)
]==])

whatis([==[Name: gompic]==])
whatis([==[Version: 2019a]==])
whatis([==[Description: Toolchain: GCC, CUDA and Open MPI]==])
whatis([==[Homepage: (none)]==])

local root = "/sw/installed/gompic/2019a"

conflict("gompic")

if not ( isloaded("GCC/8.2.0-2.31.1") ) then
    load("GCC/8.2.0-2.31.1")
end

if not ( isloaded("CUDA/10.1.105-GCC-8.2.0-2.31.1") ) then
    load("CUDA/10.1.105-GCC-8.2.0-2.31.1")
end

if not ( isloaded("OpenMPI/3.1.3-gcccuda-2019a") ) then
    load("OpenMPI/3.1.3-gcccuda-2019a")
end

setenv("EBROOTGOMPIC", root)
setenv("EBVERSIONGOMPIC", "2019a")
setenv("EBDEVELGOMPIC", pathJoin(root, "easybuild/gompic-2019a-easybuild-devel"))

-- Built with EasyBuild version 3.9.4
