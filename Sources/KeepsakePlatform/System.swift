// The system's own library, under one name: it is called otherwise on each. Whatever imports this module sees it.
#if canImport(Glibc)
// The compiler may take either of the first two for the module that defines glibc's `stat`.
@_exported public import CDispatch
@_exported public import CoreFoundation
@_exported public import Glibc
#elseif canImport(Musl)
@_exported public import Musl
#elseif canImport(Android)
@_exported public import Android
#elseif canImport(Darwin)
@_exported public import Darwin
#elseif os(Windows)
@_exported public import CRT
@_exported public import WinSDK
#endif

// URLSession, which is a part of Foundation on Apple's systems and a module of its own elsewhere.
#if canImport(FoundationNetworking)
@_exported public import FoundationNetworking
#endif
