help([==[

Description
===========
Toolchain: GCC, CUDA, Open MPI, OpenBLAS, FFTW and ScaLAPACK


More information
================
 - Homepage: (none)
]==])

whatis([==[Name: fosscuda]==])
whatis([==[Version: 2019b]==])
whatis([==[Description: Toolchain: GCC, CUDA, Open MPI, OpenBLAS, FFTW and ScaLAPACK]==])
whatis([==[Homepage: (none)]==])

local root = "/sw/installed/fosscuda/2019b"

conflict("fosscuda")

if not ( isloaded("GCC/8.3.0") ) then
    load("GCC/8.3.0")
end

if not ( isloaded("CUDA/10.1.243-GCC-8.3.0") ) then
    load("CUDA/10.1.243-GCC-8.3.0")
end

if not ( isloaded("OpenMPI/3.1.4-gcccuda-2019b") ) then
    load("OpenMPI/3.1.4-gcccuda-2019b")
end

if not ( isloaded("OpenBLAS/0.3.7-GCC-8.3.0") ) then
    load("OpenBLAS/0.3.7-GCC-8.3.0")
end

if not ( isloaded("FFTW/3.3.8-gompic-2019b") ) then
    load("FFTW/3.3.8-gompic-2019b")
end

if not ( isloaded("ScaLAPACK/2.0.2-gompic-2019b") ) then
    load("ScaLAPACK/2.0.2-gompic-2019b")
end

setenv("EBROOTFOSSCUDA", root)
setenv("EBVERSIONFOSSCUDA", "2019b")
setenv("EBDEVELFOSSCUDA", pathJoin(root, "easybuild/fosscuda-2019b-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
