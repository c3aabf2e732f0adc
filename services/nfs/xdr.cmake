# SPDX-License-Identifier: Apache-2.0
# XDR of the NFS gateway: rpcgen writes NAME.h and NAME_xdr.c from NAME.x at build time. rpcgen puts the
# path of its input into the #include line, so it runs on a copy in the folder it writes to.
find_program(HF_RPCGEN rpcgen REQUIRED)
set(_nfs_gen ${CMAKE_BINARY_DIR}/gen-nfs)
file(MAKE_DIRECTORY ${_nfs_gen})
set(_nfs_srcs)
foreach(x nfs3 mount3)
  add_custom_command(OUTPUT ${_nfs_gen}/${x}.h ${_nfs_gen}/${x}_xdr.c
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_SOURCE_DIR}/nfs/${x}.x ${x}.x
    COMMAND ${CMAKE_COMMAND} -E rm -f ${x}.h ${x}_xdr.c
    COMMAND ${HF_RPCGEN} -h -o ${x}.h ${x}.x
    COMMAND ${HF_RPCGEN} -c -o ${x}_xdr.c ${x}.x
    WORKING_DIRECTORY ${_nfs_gen}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/nfs/${x}.x VERBATIM)
  list(APPEND _nfs_srcs ${_nfs_gen}/${x}_xdr.c)
endforeach()
add_library(hf_nfs_xdr OBJECT ${_nfs_srcs})
target_include_directories(hf_nfs_xdr PRIVATE ${_nfs_gen} ${CMAKE_CURRENT_SOURCE_DIR}/nfs)
target_link_libraries(hf_nfs_xdr PRIVATE hf_generated_flags hf_base)
_hf_use(hf_nfs_xdr PRIVATE libtirpc)
if(HF_SANITIZE)
  target_compile_options(hf_nfs_xdr PRIVATE -fsanitize=${HF_SANITIZE})
endif()
target_sources(hf_svc_nfs PRIVATE $<TARGET_OBJECTS:hf_nfs_xdr>)
target_include_directories(hf_svc_nfs SYSTEM PUBLIC ${_nfs_gen})
add_dependencies(hf_svc_nfs hf_nfs_xdr)
_hf_use(hf_svc_nfs PUBLIC libtirpc libevent_core)
