help([==[

Description
===========
Toolchain: GCC, CUDA, Open MPI, OpenBLAS, FFTW and ScaLAPACK


More information
================
 - Homepage: (none)
]==])

whatis([==[Name: fosscuda]==])
whatis([==[Version: 2018b]==])
whatis([==[Description: Toolchain: GCC, CUDA, Open MPI, OpenBLAS, FFTW and ScaLAPACK]==])
whatis([==[Homepage: (none)]==])

local root = "/sw/installed/fosscuda/2018b"

conflict("fosscuda")

if not ( isloaded("GCC/7.3.0-2.30") ) then
    load("GCC/7.3.0-2.30")
end

if not ( isloaded("CUDA/9.2.88-GCC-7.3.0-2.30") ) then
    load("CUDA/9.2.88-GCC-7.3.0-2.30")
end

if not ( isloaded("OpenMPI/3.1.1-gcccuda-2018b") ) then
    load("OpenMPI/3.1.1-gcccuda-2018b")
end

if not ( isloaded("OpenBLAS/0.3.1-GCC-7.3.0-2.30") ) then
    load("OpenBLAS/0.3.1-GCC-7.3.0-2.30")
end

if not ( isloaded("FFTW/3.3.8-gompic-2018b") ) then
    load("FFTW/3.3.8-gompic-2018b")
end

if not ( isloaded("ScaLAPACK/2.0.2-gompic-2018b-OpenBLAS-0.3.1") ) then
    load("ScaLAPACK/2.0.2-gompic-2018b-OpenBLAS-0.3.1")
end

setenv("EBROOTFOSSCUDA", root)
setenv("EBVERSIONFOSSCUDA", "2018b")
setenv("EBDEVELFOSSCUDA", pathJoin(root, "easybuild/fosscuda-2018b-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
