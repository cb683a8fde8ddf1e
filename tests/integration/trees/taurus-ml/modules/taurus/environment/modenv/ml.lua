help([==[

The software of the Power9 nodes
]==])

whatis([==[Name: modenv]==])
whatis([==[Version: ml]==])
whatis([==[Description: Switches to the software of the Power9 nodes]==])

add_property("lmod", "sticky")

-- The trees lie beside this one, wherever they were copied to.
local trees = myFileName():gsub("/taurus/environment/modenv/.*$", "")

prepend_path("MODULEPATH", pathJoin(trees, "ml/all"))
