help([==[

The software of the x86 nodes
]==])

whatis([==[Name: modenv]==])
whatis([==[Version: scs5]==])
whatis([==[Description: Switches to the software of the x86 nodes]==])

add_property("lmod", "sticky")

-- The trees lie beside this one, wherever they were copied to.
local trees = myFileName():gsub("/taurus/environment/modenv/.*$", "")

prepend_path("MODULEPATH", pathJoin(trees, "scs5/all"))
