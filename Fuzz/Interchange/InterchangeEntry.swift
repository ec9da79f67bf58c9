import Foundation

/// One binary for both targets; the environment says which.
private let target = ProcessInfo.processInfo.environment["FUZZ_TARGET"].flatMap { InterchangeTarget(rawValue: $0) }

@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<Int32>?, _ arguments: UnsafeRawPointer?) -> Int32 {
  guard target != nil else {
    print("FUZZ_TARGET must be one of \(InterchangeTarget.allCases.map(\.rawValue).joined(separator: ", "))")
    exit(2)
  }
  MemoryWatch.install()
  return 0
}

@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
  guard let target else { return -1 }
  let data = bytes.map { Data(bytes: $0, count: count) } ?? Data()
  let peak = MemoryWatch.peak { target.run(data) }
  if peak > InterchangeTarget.mostBytes {
    InterchangeTarget.found("\(count) bytes of input took \(peak) bytes of memory")
  }
  return 0
}
