help([==[

Description
===========
BLAS and LAPACK


More information
================
 - Homepage: https://xianyi.github.io/OpenBLAS/
]==])

whatis([==[Name: OpenBLAS]==])
whatis([==[Version: 0.3.1-GCC-7.3.0-2.30]==])
whatis([==[Description: BLAS and LAPACK]==])
whatis([==[Homepage: https://xianyi.github.io/OpenBLAS/]==])

local root = "/sw/installed/OpenBLAS/0.3.1-GCC-7.3.0-2.30"

conflict("OpenBLAS")

if not ( isloaded("GCC/7.3.0-2.30") ) then
    load("GCC/7.3.0-2.30")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTOPENBLAS", root)
setenv("EBVERSIONOPENBLAS", "0.3.1")
setenv("EBDEVELOPENBLAS", pathJoin(root, "easybuild/OpenBLAS-0.3.1-GCC-7.3.0-2.30-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
