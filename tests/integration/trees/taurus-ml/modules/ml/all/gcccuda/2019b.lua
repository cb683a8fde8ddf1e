help([==[

Description
===========
Toolchain: GCC with CUDA


More information
================
 - Homepage: (none)
]==])

whatis([==[Name: gcccuda]==])
whatis([==[Version: 2019b]==])
whatis([==[Description: Toolchain: GCC with CUDA]==])
whatis([==[Homepage: (none)]==])

local root = "/sw/installed/gcccuda/2019b"

conflict("gcccuda")

if not ( isloaded("GCC/8.3.0") ) then
    load("GCC/8.3.0")
end

if not ( isloaded("CUDA/10.1.243-GCC-8.3.0") ) then
    load("CUDA/10.1.243-GCC-8.3.0")
end

setenv("EBROOTGCCCUDA", root)
setenv("EBVERSIONGCCCUDA", "2019b")
setenv("EBDEVELGCCCUDA", pathJoin(root, "easybuild/gcccuda-2019b-easybuild-devel"))

-- Built with EasyBuild version 4.1.0
