help([==[

Description
===========
BLAS and LAPACK


More information
================
 - Homepage: https://xianyi.github.io/OpenBLAS/
]==])

whatis([==[Name: OpenBLAS]==])
whatis([==[Version: 0.3.5-GCC-8.2.0-2.31.1]==])
whatis([==[Description: BLAS and LAPACK]==])
whatis([==[Homepage: https://xianyi.github.io/OpenBLAS/]==])

local root = "/sw/installed/OpenBLAS/0.3.5-GCC-8.2.0-2.31.1"

conflict("OpenBLAS")

if not ( isloaded("GCC/8.2.0-2.31.1") ) then
    load("GCC/8.2.0-2.31.1")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTOPENBLAS", root)
setenv("EBVERSIONOPENBLAS", "0.3.5")
setenv("EBDEVELOPENBLAS", pathJoin(root, "easybuild/OpenBLAS-0.3.5-GCC-8.2.0-2.31.1-easybuild-devel"))

-- Built with EasyBuild version 3.9.4
