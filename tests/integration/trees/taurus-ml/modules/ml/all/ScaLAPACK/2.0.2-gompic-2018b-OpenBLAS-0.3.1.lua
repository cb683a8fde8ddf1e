help([==[

Description
===========
Linear algebra for distributed memory


More information
================
 - Homepage: https://www.netlib.org/scalapack/
]==])

whatis([==[Name: ScaLAPACK]==])
whatis([==[Version: 2.0.2-gompic-2018b-OpenBLAS-0.3.1]==])
whatis([==[Description: Linear algebra for distributed memory]==])
whatis([==[Homepage: https://www.netlib.org/scalapack/]==])

local root = "/sw/installed/ScaLAPACK/2.0.2-gompic-2018b-OpenBLAS-0.3.1"

conflict("ScaLAPACK")

if not ( isloaded("gompic/2018b") ) then
    load("gompic/2018b")
end

if not ( isloaded("OpenBLAS/0.3.1-GCC-7.3.0-2.30") ) then
    load("OpenBLAS/0.3.1-GCC-7.3.0-2.30")
end

prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTSCALAPACK", root)
setenv("EBVERSIONSCALAPACK", "2.0.2")
setenv("EBDEVELSCALAPACK", pathJoin(root, "easybuild/ScaLAPACK-2.0.2-gompic-2018b-OpenBLAS-0.3.1-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
