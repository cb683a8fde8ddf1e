help([==[

Description
===========
Toolchain: GCC with CUDA


More information
================
 - Homepage: (none)
]==])

whatis([==[Name: gcccuda]==])
whatis([==[Version: 2018b]==])
whatis([==[Description: Toolchain: GCC with CUDA]==])
whatis([==[Homepage: (none)]==])

local root = "/sw/installed/gcccuda/2018b"

conflict("gcccuda")

if not ( isloaded("GCC/7.3.0-2.30") ) then
    load("GCC/7.3.0-2.30")
end

if not ( isloaded("CUDA/9.2.88-GCC-7.3.0-2.30") ) then
    load("CUDA/9.2.88-GCC-7.3.0-2.30")
end

setenv("EBROOTGCCCUDA", root)
setenv("EBVERSIONGCCCUDA", "2018b")
setenv("EBDEVELGCCCUDA", pathJoin(root, "easybuild/gcccuda-2018b-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
