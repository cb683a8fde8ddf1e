help([==[

Description
===========
Collective communication between NVIDIA GPUs


More information
================
 - Homepage: https://developer.nvidia.com/nccl
]==])

whatis([==[Name: NCCL]==])
whatis([==[Version: 2.4.2-gcccuda-2019a]==])
whatis([==[Description: Collective communication between NVIDIA GPUs]==])
whatis([==[Homepage: https://developer.nvidia.com/nccl]==])

local root = "/sw/installed/NCCL/2.4.2-gcccuda-2019a"

conflict("NCCL")

if not ( isloaded("gcccuda/2019a") ) then
    load("gcccuda/2019a")
end

prepend_path("CPATH", pathJoin(root, "include"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("LIBRARY_PATH", pathJoin(root, "lib"))
setenv("EBROOTNCCL", root)
setenv("EBVERSIONNCCL", "2.4.2")
setenv("EBDEVELNCCL", pathJoin(root, "easybuild/NCCL-2.4.2-gcccuda-2019a-easybuild-devel"))

-- Built with EasyBuild version 3.9.4
