// https://developer.apple.com/documentation/simd: matrices by columns (simd_floatCxR), and quaternions.

public struct simd_float2x2: Equatable, Sendable {
  public var columns: (SIMD2<Float>, SIMD2<Float>)
  public init(_ columns: [SIMD2<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float2x3: Equatable, Sendable {
  public var columns: (SIMD3<Float>, SIMD3<Float>)
  public init(_ columns: [SIMD3<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float2x4: Equatable, Sendable {
  public var columns: (SIMD4<Float>, SIMD4<Float>)
  public init(_ columns: [SIMD4<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float3x2: Equatable, Sendable {
  public var columns: (SIMD2<Float>, SIMD2<Float>, SIMD2<Float>)
  public init(_ columns: [SIMD2<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float3x3: Equatable, Sendable {
  public var columns: (SIMD3<Float>, SIMD3<Float>, SIMD3<Float>)
  public init(_ columns: [SIMD3<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float3x4: Equatable, Sendable {
  public var columns: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)
  public init(_ columns: [SIMD4<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float4x2: Equatable, Sendable {
  public var columns: (SIMD2<Float>, SIMD2<Float>, SIMD2<Float>, SIMD2<Float>)
  public init(_ columns: [SIMD2<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float4x3: Equatable, Sendable {
  public var columns: (SIMD3<Float>, SIMD3<Float>, SIMD3<Float>, SIMD3<Float>)
  public init(_ columns: [SIMD3<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_float4x4: Equatable, Sendable {
  public var columns: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)
  public init(_ columns: [SIMD4<Float>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_quatf: Equatable, Sendable {
  public var vector: SIMD4<Float>
  public init(vector: SIMD4<Float>) { self.vector = vector }
}

public struct simd_double2x2: Equatable, Sendable {
  public var columns: (SIMD2<Double>, SIMD2<Double>)
  public init(_ columns: [SIMD2<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double2x3: Equatable, Sendable {
  public var columns: (SIMD3<Double>, SIMD3<Double>)
  public init(_ columns: [SIMD3<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double2x4: Equatable, Sendable {
  public var columns: (SIMD4<Double>, SIMD4<Double>)
  public init(_ columns: [SIMD4<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double3x2: Equatable, Sendable {
  public var columns: (SIMD2<Double>, SIMD2<Double>, SIMD2<Double>)
  public init(_ columns: [SIMD2<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double3x3: Equatable, Sendable {
  public var columns: (SIMD3<Double>, SIMD3<Double>, SIMD3<Double>)
  public init(_ columns: [SIMD3<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double3x4: Equatable, Sendable {
  public var columns: (SIMD4<Double>, SIMD4<Double>, SIMD4<Double>)
  public init(_ columns: [SIMD4<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double4x2: Equatable, Sendable {
  public var columns: (SIMD2<Double>, SIMD2<Double>, SIMD2<Double>, SIMD2<Double>)
  public init(_ columns: [SIMD2<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double4x3: Equatable, Sendable {
  public var columns: (SIMD3<Double>, SIMD3<Double>, SIMD3<Double>, SIMD3<Double>)
  public init(_ columns: [SIMD3<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_double4x4: Equatable, Sendable {
  public var columns: (SIMD4<Double>, SIMD4<Double>, SIMD4<Double>, SIMD4<Double>)
  public init(_ columns: [SIMD4<Double>]) { fatalError("a stub") }
  public static func == (one: Self, other: Self) -> Bool { one.columns == other.columns }
}

public struct simd_quatd: Equatable, Sendable {
  public var vector: SIMD4<Double>
  public init(vector: SIMD4<Double>) { self.vector = vector }
}
