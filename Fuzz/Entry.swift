import Foundation

/// One binary for all targets; the environment says which.
private let target = ProcessInfo.processInfo.environment["FUZZ_TARGET"].flatMap { Target(rawValue: $0) }

@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<Int32>?, _ arguments: UnsafeRawPointer?) -> Int32 {
  guard let target else {
    print("FUZZ_TARGET must be one of \(Target.allCases.map(\.rawValue).joined(separator: ", "))")
    exit(2)
  }
  MemoryWatch.install()
  return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  guard let target else { return -1 }
  let data = Seal.closed(bytes, count)
  let peak = MemoryWatch.peak { target.run(data) }
  if peak > min(Target.bytesForAny + Target.bytesForByte * count, Target.mostBytes) {
    Target.found("\(count) bytes of input took \(peak) bytes of memory")
  }
  return 0
}
