help([==[

Description
===========
Collective communication between NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/nccl
]==])

whatis([==[Name: NCCL]==])
whatis([==[Version: 2.3.7-fosscuda-2018b]==])
whatis([==[Description: Collective communication between NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/nccl]==])

local root = "/sw/installed/NCCL/2.3.7-fosscuda-2018b"

conflict("NCCL")

if not ( isloaded("fosscuda/2018b") ) then
    load("fosscuda/2018b")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTNCCL", root)
setenv("EBVERSIONNCCL", "2.3.7")
setenv("EBDEVELNCCL", pathJoin(root, "easybuild/NCCL-2.3.7-fosscuda-2018b-easybuild-devel"))

-- Built with EasyBuild version 3.7.1
