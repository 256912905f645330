# Fails unless every symbol that kernel objects show to others lies in the namespace of their
# instruction set.
# usage: cmake -DNM=nm -DLEVEL=avx2 "-DOBJECTS=a.o;b.o" -P native/check_levels.cmake
# An inline function outside of it would be kept once for all sets, perhaps with instructions that a CPU
# lacks.
string(LENGTH "${LEVEL}" length)
set(own "N4gbpn${length}${LEVEL}")  # gbpn::LEVEL:: as compilers write it
set(strangers "")
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${NM} --extern-only --defined-only --portability "${object}"
    OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${NM} cannot read ${object}")
  endif()
  string(REPLACE "\n" ";" symbols "${symbols}")
  foreach(line IN LISTS symbols)
    string(REGEX REPLACE " .*" "" symbol "${line}")
    if(symbol AND NOT symbol MATCHES "^_+Z[A-Z]*${own}")
      list(APPEND strangers "${symbol}")
    endif()
  endforeach()
endforeach()
if(strangers)
  list(JOIN strangers "\n  " text)
  message(FATAL_ERROR "kernels of ${LEVEL} must define nothing outside gbpn::${LEVEL}; got\n  ${text}\n"
    "make such a function static, always inline, or part of the namespace of the level")
endif()
