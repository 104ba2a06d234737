# SPDX-License-Identifier: LGPL-2.1-or-later
# Install rules. The target `installable` builds everything that they install.
set(MMTRACE_ZSH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Directory for zsh completion")
set(MMTRACE_FISH_COMPLETIONS ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d CACHE STRING
    "Directory for fish completion")
add_custom_target(installable DEPENDS mmtrace mmtrace_shared mmtrace_archive)

# Installing must not build anything: the files would belong to root.
install(CODE "
  foreach(file \"$<TARGET_FILE:mmtrace>\" \"$<TARGET_FILE:mmtrace_shared>\" \"$<TARGET_FILE:mmtrace_archive>\")
    if(NOT EXISTS \"\${file}\")
      message(FATAL_ERROR \"Not everything is built yet (no \${file}). First run:\n  cmake --build ${CMAKE_BINARY_DIR}\")
    endif()
  endforeach()")

install(TARGETS mmtrace RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS mmtrace_shared mmtrace_archive LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                                               ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/mmtrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

foreach(directory LIBDIR INCLUDEDIR)
  set(pc_${directory} ${CMAKE_INSTALL_${directory}})
  if(NOT IS_ABSOLUTE ${pc_${directory}})
    set(pc_${directory} "\${prefix}/${pc_${directory}}")
  endif()
endforeach()
configure_file(lib/mmtrace.pc.in mmtrace.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mmtrace.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
# The prefix given to cmake --install may differ from the configured one.
install(CODE "
  set(file \"${CMAKE_INSTALL_LIBDIR}/pkgconfig/mmtrace.pc\")
  if(NOT IS_ABSOLUTE \"\${file}\")
    set(file \"\${CMAKE_INSTALL_PREFIX}/\${file}\")
  endif()
  file(READ \"\$ENV{DESTDIR}\${file}\" text)
  string(REGEX REPLACE \"^prefix=[^\\n]*\" \"prefix=\${CMAKE_INSTALL_PREFIX}\" text \"\${text}\")
  file(WRITE \"\$ENV{DESTDIR}\${file}\" \"\${text}\")")

install(FILES cmd/completion/mmtrace.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME mmtrace)
install(FILES cmd/completion/_mmtrace DESTINATION ${MMTRACE_ZSH_COMPLETIONS})
install(FILES cmd/completion/mmtrace.fish DESTINATION ${MMTRACE_FISH_COMPLETIONS})
# These have no effect until an administrator enables them.
foreach(unit mmtrace-setup.service mmtrace-watch@.service)
  configure_file(cmd/${unit}.in ${unit} @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${unit} DESTINATION lib/systemd/system)
endforeach()
install(FILES cmd/60-mmtrace.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(PROGRAMS cmd/fleet-export.sh cmd/fleet-push.sh DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(DIRECTORY lib/output/sql DESTINATION ${CMAKE_INSTALL_DATADIR}/mmtrace)
file(GLOB man_pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.[1357])
foreach(page ${man_pages})
  string(REGEX MATCH "[1357]$" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# Lets the dynamic linker find the shared library at once. It fails without root, which does no harm.
find_program(LDCONFIG ldconfig PATHS /sbin /usr/sbin)
mark_as_advanced(LDCONFIG)
if(LDCONFIG)
  install(CODE "
    if(\"\$ENV{DESTDIR}\" STREQUAL \"\" AND NOT CMAKE_CROSSCOMPILING)
      execute_process(COMMAND \"${LDCONFIG}\" OUTPUT_QUIET ERROR_QUIET)
    endif()")
endif()

add_custom_target(uninstall
  COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt -DLDCONFIG=${LDCONFIG}
          -P ${CMAKE_SOURCE_DIR}/lib/uninstall.cmake)
